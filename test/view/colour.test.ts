import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { cli, root } from "../fakes/processes/cli.ts";
import { goldenTrajectory } from "../fakes/records/golden-session.ts";

test("a terminal gets colours unless NO_COLOR or a dumb TERM says no; a page that cannot be written is named", async (t) => {
  const run = await mkdtemp(join(tmpdir(), "alidade-colour-"));
  t.after(() => rm(run, { recursive: true }));
  await writeFile(join(run, "trajectories.jsonl"), `${JSON.stringify(goldenTrajectory())}\n`);
  const html = join(run, "none", "page.html");
  const unwritable = await cli(["show", "sesgolden", "--run", run, "--html", html]);
  assert.deepEqual([unwritable.code, unwritable.stderr.startsWith(`alidade: cannot write ${html}: `)], [1, true]);
  const show = `'${process.execPath}' '${join(root, "cli/cli.ts")}' show sesgolden --run '${run}'`;
  /** In a terminal of its own; null where this machine has no util-linux. */
  const inTerminal = (env: Record<string, string>): Promise<string | null> =>
    new Promise((resolve) => {
      const options = { env: { PATH: process.env.PATH, TERM: "xterm-256color", ...env } };
      execFile("script", ["-qec", show, "/dev/null"], options, (error, stdout) => resolve(error === null ? stdout : null));
    });
  const inked = await inTerminal({});
  if (inked === null) return t.skip("there is no script of util-linux here");
  assert.ok(inked.includes("\u001b[2m"), inked);
  for (const [name, value] of [
    ["NO_COLOR", "1"],
    ["TERM", "dumb"],
  ] as const) {
    const plain = await inTerminal({ [name]: value });
    assert.match(plain ?? "", /session +sesgolden/);
    assert.ok(!plain?.includes("\u001b"), plain ?? "");
  }
});
