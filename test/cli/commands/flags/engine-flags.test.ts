import assert from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Trajectory } from "../../../../base/schema/trajectory.ts";
import { ScriptedEngine } from "../../../fakes/engines/scripted-engine.ts";
import { sglangWire } from "../../../fakes/engines/scripted-sglang.ts";
import { ScriptedWire } from "../../../fakes/engines/scripted-wire.ts";
import { cli } from "../../../fakes/processes/cli.ts";
import { chatHarness } from "../../../fakes/rollouts/small-task.ts";

test("every verb that opens sessions or looks at servers takes servers of any kind, and several of them", async (t) => {
  // Not in the folder of this checkout, where a user's own `serve` may be at work.
  const folder = await mkdtemp(join(tmpdir(), "alidade-engine-flags-"));
  t.after(() => rm(folder, { recursive: true }));
  const url = "http://127.0.0.1:1";
  for (const verb of [["serve", "--out", folder], ["record"], ["doctor"], ["run", "tasks"]]) {
    const command = verb[0] === "record" ? ["--", "true"] : [];
    const one = await cli([...verb, "-e", url, "--kind", "vlmm", ...command]);
    assert.match(one.stderr, /engine\.kind is "vlmm": .*"sglang"/, verb[0]);
    const two = await cli([...verb, "-e", url, "-e", url, "--kind", "sglang", "--api-key-env", "NO_SUCH_KEY", ...command]);
    if (verb[0] !== "run") assert.match(two.stderr, /engines\[0\]\.api_key_env names NO_SUCH_KEY, which is not set/, verb[0]);
    else assert.doesNotMatch(two.stderr, /unknown option/);
    assert.deepEqual([one.code, two.code], [2, 2], verb[0]);
  }
});

test("a program is recorded in front of an SGLang by a flag, and before several servers at one of them", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "alidade-engine-flags-"));
  t.after(() => rm(folder, { recursive: true }));
  const says = () => ({ text: "hello" });
  await using sglang = await ScriptedWire.start(sglangWire, says);
  await using first = await ScriptedEngine.start(says);
  await using second = await ScriptedEngine.start(says);
  const recordedBy = async (out: string, flags: string[]): Promise<unknown[]> => {
    const result = await cli(["record", "-o", join(folder, out), ...flags, "--", process.execPath, chatHarness]);
    assert.equal(result.code, 0, result.stderr);
    const [call] = Trajectory.parse(JSON.parse(await readFile(join(folder, out, "trajectories.jsonl"), "utf8"))).calls;
    return [call?.engine, call?.engine_name, (call?.sampled_length ?? 0) > 0];
  };
  assert.deepEqual(await recordedBy("one", ["-e", sglang.url, "--kind", "sglang"]), ["sglang", "sglang", true]);
  assert.deepEqual(await recordedBy("two", ["-e", first.url, "-e", second.url]), ["vllm", "engine-1", true]);
});
