/**
 * Six unmodified harnesses through four dialects, each at the same real bug of a real npm package, in Docker: reward
 * 1 with the right plays and 0 with the wrong ones, and every trainable token proven against a relay of the test's own.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { startPracticeEngine } from "../../practice/start.ts";
import { need } from "../needs.ts";
import { examples, type Played, play } from "./play.ts";
import { proveItCanFail, proveRewards, proveTokens } from "./prove.ts";

for (const harness of ["pi", "codex", "claude-code", "gemini-cli", "qwen-code", "opencode"] as const)
  test(`${harness} solves the task with the right plays and not with the wrong ones, and every trained token is proven`, async (t) => {
    if (!(await need(t, "docker")) || !(await need(t, `harness:${harness}`))) return;
    await using engine = await startPracticeEngine({ seed: 3, signal: t.signal });
    await using played = await play({
      harness,
      engineUrl: engine.url,
      task: `${join(examples, "tasks/swe-npm.jsonl")}#minimist-constructor-pollution`,
      plays: join(examples, "tasks/plays/minimist-constructor-pollution.json"),
      sandbox: "docker",
      signal: t.signal,
    });
    proveRewards(played);
    proveTokens(played);
    proveItCanFail(played);
    proveNoGrammarAsked(played);
    for (const trajectory of played.trajectories) t.diagnostic(`${trajectory.rollout_id}: ${JSON.stringify(trajectory.fidelity)}`);
  });

/** What a sandboxed harness asks for and does not get in training, it cannot miss where it never asks. */
function proveNoGrammarAsked({ trajectories }: Played): void {
  for (const { withheld, requested_sampling: asked } of trajectories.flatMap(({ calls }) => calls)) {
    assert.equal(withheld, undefined);
    assert.deepEqual([asked.response_format, asked.parallel_tool_calls === false], [undefined, false]);
  }
}
