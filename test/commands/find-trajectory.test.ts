import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { cli } from "../fakes/cli.ts";
import { goldenTrajectory } from "../fakes/golden-session.ts";

test("where no run is named the newest one that recorded anything is taken, not the folder of one that never began", async (t) => {
  const cwd = await mkdtemp(join(tmpdir(), "alidade-newest-"));
  t.after(() => rm(cwd, { recursive: true }));
  for (const [name, lines, second] of [
    ["older", `${JSON.stringify(goldenTrajectory())}\n`, 1],
    ["refused", "", 2],
  ] as const) {
    const folder = join(cwd, "runs", name);
    await mkdir(folder, { recursive: true });
    for (const [file, text] of Object.entries({ "run.json": "{}\n", "rollouts.jsonl": "", "trajectories.jsonl": lines }))
      await writeFile(join(folder, file), text);
    await utimes(folder, second, second);
  }
  const exported = await cli(["export", "--format", "canonical"], { cwd });
  assert.equal(exported.stdout.trim().split("\n").length, 1, exported.stderr);
  assert.match(exported.stderr, /of 1 trajectories/);
  await rm(join(cwd, "runs", "older"), { recursive: true });
  const nothing = await cli(["export"], { cwd });
  assert.equal(nothing.code, 2);
  assert.match(nothing.stderr, /no run below runs\/ here/);
  const named = await cli(["export", "--run", "runs/refused"], { cwd });
  assert.equal(named.code, 0, "a folder that is named is the one that is meant");
});
