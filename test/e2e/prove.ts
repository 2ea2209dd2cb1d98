/** What every session of a real harness must hold, asked of a run that was played behind the recording relay. */
import assert from "node:assert/strict";
import type { TreeNode } from "../../base/schema/trajectory.ts";
import { selectRows } from "../../reconstruct/index.ts";
import { verifyRows, verifyTrajectory } from "../../reconstruct/verify.ts";
import type { Played } from "./play.ts";
import { told } from "./play.ts";

/** A turn shows something only when its policy chose: this many tokens at the least (issue of the demo's plays). */
const chosenTokensPerTurn = 5;

export function proveRewards({ records }: Played): void {
  assert.deepEqual(
    records.map((record) => record.verdict?.reward),
    [1, 0],
    told(records),
  );
  assert.ok(
    records.every((record) => record.stop_reason === "exited"),
    told(records),
  );
}

/** The engine had exactly the path's tokens as context, sampled exactly these ids with these logprobs, and nothing else trains. */
export function proveTokens({ trajectories, exchanges }: Played): void {
  assert.equal(trajectories.length, 2);
  let proven = 0;
  for (const trajectory of trajectories) {
    const report = verifyTrajectory(trajectory, exchanges);
    assert.deepEqual(report.mismatches, []);
    const { rows, tokens } = selectRows(trajectory, { allowGrammar: true });
    assert.equal(report.trainable_tokens, tokens.trained);
    assert.ok(
      report.trainable_tokens >= chosenTokensPerTurn * trajectory.calls.length,
      `only ${report.trainable_tokens} tokens were chosen`,
    );
    assert.deepEqual(verifyRows(trajectory, rows), []);
    const { sampled_tokens, trainable_tokens, excluded } = trajectory.fidelity;
    assert.equal(
      sampled_tokens,
      trainable_tokens + Object.values(excluded).reduce((sum, count) => sum + count, 0),
      "every sampled token has its place or its reason",
    );
    assert.ok(trajectory.calls.every((call) => call.outcome === "delivered"));
    assert.ok(trajectory.calls.every((call) => call.policy.start?.version === "weights-7"));
    proven += report.calls;
  }
  assert.equal(proven, exchanges.length, "every exchange that the relay saw is a call of one of the two sessions");
}

/** The proof must be able to fail: a shifted logprob and another id are found. */
export function proveItCanFail({ trajectories, exchanges }: Played): void {
  const [trajectory] = trajectories;
  assert.ok(trajectory);
  const spoilt = structuredClone(trajectory);
  const node = spoilt.nodes.find((one) => isChosen(one) && one.token_ids.length > 1);
  assert.ok(node?.logprobs);
  node.logprobs.reverse();
  assert.ok(!verifyTrajectory(spoilt, exchanges).ok);
  const swapped = structuredClone(trajectory);
  const other = swapped.nodes.find(isChosen);
  assert.ok(other);
  other.token_ids[0] = (other.token_ids[0] ?? 0) + 1;
  assert.ok(!verifyTrajectory(swapped, exchanges).ok);
}

/** A node that the proof above looks at: under a grammar too. */
function isChosen({ kind, reason }: TreeNode): boolean {
  return kind === "sampled" && (reason === null || reason === "grammar");
}
