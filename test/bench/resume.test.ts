/** The short form of `bench/resume.ts`: a run that is killed between and within its calls samples none of the finished ones again. */
import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { killAndGoOn } from "../../bench/resume/killed-process.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";

const scratch = scratchFolder("kills");

test("no rollout is lost or doubled by kills, and no finished call is sampled again or trained twice", { timeout: 300_000 }, async () => {
  const place = join(scratch, "run");
  await mkdir(place);
  const audit = await killAndGoOn({ place, killed: "run", rollouts: 2, kills: 2, turns: 4, seed: 3 });
  assert.deepEqual(
    [audit.lost, audit.doubled, audit.again_tokens, audit.wrongly_trained, audit.rewards],
    [0, 0, 0, 0, { "1": 2 }],
    JSON.stringify(audit),
  );
  assert.ok(audit.spared_tokens > 0);
});
