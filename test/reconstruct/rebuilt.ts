/** What every test of a trajectory checks before it looks at its own question. */
import assert from "node:assert/strict";
import type { Message } from "../../base/schema/message.ts";
import { Trajectory } from "../../base/schema/trajectory.ts";
import { reconstruct, selections, selectRows, type TrajectoryFacts, verifyRows, verifyTrajectory } from "../../reconstruct/index.ts";
import type { LogBuilder } from "../fakes/records/log-builder.ts";

/** Reconstructs, checks everything that must hold of any trajectory under any selection, and returns it. */
export function rebuilt(log: LogBuilder, facts: TrajectoryFacts = {}): Trajectory {
  const trajectory = Trajectory.parse(reconstruct(log.entries, facts));
  const proof = verifyTrajectory(trajectory, [...log.exchanges.values()]);
  assert.deepEqual(proof.mismatches, []);
  const strict = selectRows(trajectory, { allowGrammar: true }).tokens.trained;
  assert.equal(proof.trainable_tokens, strict);
  assert.equal(selectRows(trajectory).tokens.trained, trajectory.fidelity.trainable_tokens);
  for (const { name } of selections) {
    const { rows, tokens } = selectRows(trajectory, { strategy: name, allowGrammar: true });
    assert.deepEqual(verifyRows(trajectory, rows), [], name);
    const excluded = Object.values(tokens.excluded).reduce((sum, each) => sum + each, 0);
    assert.equal(tokens.trained + excluded, trajectory.fidelity.sampled_tokens, name);
    if (name !== "main-agent") assert.equal(tokens.trained, strict, name);
  }
  return trajectory;
}

/** Says, calls a tool and gets its result: the next request's conversation. */
export function turn(history: Message[], says: Message, result: Message): Message[] {
  return [...history, says, result];
}
