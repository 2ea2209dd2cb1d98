/** The short form of `bench/resume.ts`: what is killed between and within its calls samples none of the finished ones again. */
import assert from "node:assert/strict";
import { globSync } from "node:fs";
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { killAndGoOn } from "../../bench/resume/killed-process.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";

const scratch = scratchFolder("kills");

for (const killed of ["run", "service"] as const)
  test(`${killed}: no rollout is lost or doubled by kills, and no finished call is sampled again or trained twice`, {
    timeout: 300_000,
  }, async () => {
    const place = join(scratch, killed);
    await mkdir(place);
    const audit = await killAndGoOn({ place, killed, rollouts: 2, kills: 2, turns: 4, seed: 3 });
    assert.deepEqual(
      [audit.lost, audit.doubled, audit.again_tokens, audit.wrongly_trained, audit.rewards],
      [0, 0, 0, 0, { "1": 2 }],
      JSON.stringify(audit),
    );
    assert.ok(audit.spared_tokens > 0);
    await assertDeathsTell(place);
  });

/** Progress of the attempts that ran when the process was killed; waiting ones are left out. */
async function assertDeathsTell(place: string): Promise<void> {
  const [file = ""] = globSync("runs/*/deaths/deaths.jsonl", { cwd: place });
  const deaths = (await readFile(join(place, file), "utf8")).trim().split("\n");
  const told = deaths.map((line) => JSON.parse(line) as { running: string[]; waiting: string[]; calls: Record<string, number> });
  assert.ok(told.some(({ waiting }) => waiting.length > 0));
  assert.ok(told.some(({ running, calls }) => running.some((attempt) => (calls[attempt] ?? 0) > 0)));
  for (const { running, waiting } of told) assert.ok(running.length + waiting.length <= 2, JSON.stringify(told));
}
