/** `alidade fidelity --trainer-logprobs` over a recorded session, with the file as the Python client writes it. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { startPracticeEngine } from "../../../practice/start.ts";
import type { DriftSummary } from "../../../reconstruct/index.ts";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";
import { cli } from "../../fakes/processes/cli.ts";
import { recordChat } from "../../fakes/records/record-chat.ts";

const scratch = scratchFolder("trainer-logprobs");

/** A trainer that reads rows and gives numbers for all trained tokens: the recorded ones, moved by `off` nats. */
const trainer = `
import json, sys
from alidade import write_trainer_logprobs
rows, path, off = sys.argv[1], sys.argv[2], float(sys.argv[3])
for line in open(rows):
    row = json.loads(line)
    again = [None if one is None else one - off * (1 + at % 3) for at, one in enumerate(row["logprobs"])]
    write_trainer_logprobs(path, row, again)
`;

test("a trainer's file is held against the record: agreement, an engine that is off, and lines that are none", async () => {
  const run = join(scratch, "run");
  await using engine = await startPracticeEngine({ seed: 10 });
  await recordChat(engine.url, run, 3);
  const rows = join(scratch, "rows.jsonl");
  assert.equal((await cli(["export", "--run", run, "--format", "flat", "-o", rows])).code, 0);
  const env = { ...process.env, PYTHONPATH: join(import.meta.dirname, "../../../clients/python") };
  const fileOf = async (off: number): Promise<string> => {
    const path = join(scratch, `off-${off}.jsonl`);
    await promisify(execFile)("python3", ["-c", trainer, rows, path, String(off)], { env });
    return path;
  };
  const asked = async (path: string, ...more: string[]) => cli(["fidelity", "--run", run, "--trainer-logprobs", path, ...more]);
  const driftOf = async (path: string) => (JSON.parse((await asked(path, "--json")).stdout) as { drift: DriftSummary }).drift;

  const agreeing = await driftOf(await fileOf(0));
  assert.deepEqual([agreeing.calls.length, agreeing.max, agreeing.causes, agreeing.unknown_calls], [3, 0, {}, 0]);
  assert.ok(agreeing.compared > 20);
  assert.deepEqual((await driftOf(await fileOf(1))).causes, { engine: 3 });
  const { stdout } = await asked(await fileOf(1));
  assert.match(stdout, /\n\n3 × engine: Many tokens .*\n(?: {2}ses.*, turn \d: .* in an exact context\n){3} {2}→ compare numerics/);

  const strange = join(scratch, "strange.jsonl");
  await writeFile(strange, `${JSON.stringify({ call_id: "__proto__", logprobs: [-1] })}\n`);
  const { unknown_calls, mean, compared } = await driftOf(strange);
  assert.deepEqual([unknown_calls, mean, compared], [1, null, 0], "what was not compared has no figure");
  await writeFile(strange, '{"call_id": "c", "logprobs": [1e999]}\n');
  assert.match((await asked(strange)).stderr, /strange\.jsonl line 1 /);
  assert.match((await asked(join(scratch, "none"))).stderr, /--trainer-logprobs: cannot read it/);
});
