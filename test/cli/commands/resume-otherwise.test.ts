/** A harness that does otherwise on purpose when it is driven again: it gets one rollout from nothing, and no part of the one before. */
import assert from "node:assert/strict";
import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import type { RolloutRecord } from "../../../base/schema/rollout.ts";
import { readRollouts, readTrajectories } from "../../../rollouts/index.ts";
import { ScriptedEngine } from "../../fakes/engines/scripted-engine.ts";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";
import { cli, jsonOf, startCli } from "../../fakes/processes/cli.ts";
import { chatHarness, runFile, writeTask } from "../../fakes/rollouts/small-task.ts";

const scratch = scratchFolder("otherwise");

test("a harness that asks otherwise when it is replayed begins anew, once, and earns by what it does then alone", {
  timeout: 300_000,
}, async () => {
  const hold = Promise.withResolvers<void>();
  let isHolding = true;
  await using engine = await ScriptedEngine.start(({ messages, tools }) => {
    const turn = messages.filter(({ role }) => role === "assistant").length;
    const command = ["ls", "echo yes > done.txt"][turn];
    if (command !== undefined) return { tool_calls: [{ name: "bash", arguments: JSON.stringify({ command }) }] };
    return { text: "done", ...(isHolding && tools?.length && { before: hold.promise }) };
  });
  await writeTask(scratch, "small");
  // In its second life it asks for titles, which its first one did not.
  const mark = join(scratch, "lived");
  const script = `if [ -e ${mark} ]; then export HARNESS_TITLES=1; fi; touch ${mark}; exec node ${chatHarness} "$0"`;
  const command = ["sh", "-c", script, "{instruction}"];
  await writeFile(join(scratch, "run.yaml"), runFile({ engine: engine.url, tasks: [join(scratch, "small")], command }));
  const out = join(scratch, "runs");
  await using running = startCli(["run", "-c", join(scratch, "run.yaml"), "-n", "1", "-o", out, "--json"]);
  await running.until(() => engine.requests.filter(({ tools }) => tools?.length).length === 3);
  await running.kill("SIGKILL");
  isHolding = false;
  hold.resolve();

  const path = join(out, (await readdir(out))[0] ?? "");
  const resumed = await cli(["run", "--resume", path, "--json"]);
  assert.equal(resumed.code, 0, resumed.stderr);
  const [record] = jsonOf<{ rollouts: RolloutRecord[] }>(resumed).rollouts;
  assert.deepEqual([record?.attempt, record?.verdict?.reward, record?.error, record?.resume?.how], [2, 1, null, "again"]);
  assert.ok((record?.resume?.again_tokens ?? 0) > 0);
  assert.match(record?.resume?.why ?? "", /turn 1|the record has no request/);
  const records = await readRollouts(path);
  assert.deepEqual(
    records.map(({ attempt, stop_reason }) => [attempt, stop_reason]),
    [
      [1, "interrupted"],
      [2, "exited"],
    ],
  );
  const [before] = records;
  const [only, ...others] = await readTrajectories(path);
  assert.deepEqual([others.length, only?.attempt, only?.resumed], [0, 2, []]);
  assert.notEqual(only?.session_id, before?.session_id, "what it left is no part of it");
  assert.equal(jsonOf<{ resumes: { again_tokens: number } }>(resumed).resumes.again_tokens, record?.resume?.again_tokens);
});
