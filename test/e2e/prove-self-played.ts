/** What a session of a harness whose model plays by itself must hold, and what is counted of it. */
import assert from "node:assert/strict";
import type { LogLine } from "../../base/schema/session-log.ts";
import { selectRows } from "../../reconstruct/index.ts";
import { verifyRows, verifyTrajectory } from "../../reconstruct/verify.ts";
import type { SelfPlayed } from "./play-by-itself.ts";

/** What a harness makes of a turn that it cannot use: it repairs a call, or leaves the turn out. */
export const ofTheHarness = ["edited", "arguments_changed", "tool_calls_changed", "turn_dropped"];

/** Nats, over long sequences in float32: scored in one batch, sampled turn by turn over cached prefixes. */
export const toleranceOverTurns = 1e-3;

/** Every token was sampled where the record says, and is trained; nothing failed unseen. */
export function proveTokens({ trajectory, exchanges, unseen }: SelfPlayed): void {
  const report = verifyTrajectory(trajectory, exchanges);
  assert.deepEqual(report.mismatches, []);
  assert.equal(report.unclaimed_exchanges, 0);
  assert.equal(report.trainable_tokens, trajectory.fidelity.sampled_tokens, JSON.stringify(trajectory.fidelity));
  assert.deepEqual(verifyRows(trajectory, selectRows(trajectory).rows), []);
  assert.deepEqual(unseen, []);
}

/** Turns go on from the sampled tokens themselves, but for those that `causes` take away: a sequence ends with what nothing went on from. */
export function proveContinuity({ trajectory, entries }: Pick<SelfPlayed, "trajectory" | "entries">, causes: string[]): void {
  const parted = trajectory.calls.filter((call) => call.match !== "root" && call.match !== "exact");
  const told = JSON.stringify(
    trajectory.calls.map(({ call_id, parent_call_id, match, cause, restored }) => ({
      call_id,
      parent_call_id,
      match,
      cause,
      restored: restored.at(-1),
    })),
  );
  assert.ok(
    parted.every((call) => causes.includes(call.cause ?? "")),
    told,
  );
  const continued = new Set(trajectory.calls.filter((call) => call.match === "exact").map((call) => call.parent_call_id));
  const ends = trajectory.calls.filter((call) => !continued.has(call.call_id));
  assert.equal(trajectory.traces.length, ends.length, told);
  const continuations = entries.filter((entry) => entry.type === "call_finished" && entry.continuity?.mode === "continued");
  assert.equal(trajectory.calls.filter((call) => call.match === "exact").length, continuations.length);
}

export function counted({ trajectory, entries, seconds, failed, ended, told }: SelfPlayed) {
  const { calls, fidelity, traces } = trajectory;
  const sum = (of: (call: (typeof calls)[number]) => number | null | undefined) =>
    calls.reduce((total, call) => total + (of(call) ?? 0), 0);
  return {
    calls: calls.length,
    told,
    traces: traces.length,
    row_inflation: fidelity.row_inflation,
    matches: fidelity.matches,
    causes: fidelity.causes,
    rendered: renderCauses(entries),
    trainable: fidelity.trainable_tokens,
    prompt: sum((call) => call.usage?.prompt_tokens),
    cached: sum((call) => call.usage?.cached_tokens),
    seconds: Math.round(seconds * 10) / 10,
    ...(failed && { said: `${ended.stdout}\n${ended.stderr}`.slice(-300) }),
  };
}

/** How often a call's prompt was rendered anew, by cause. */
function renderCauses(entries: LogLine[]): Record<string, number> {
  const causes: Record<string, number> = {};
  for (const entry of entries)
    if (entry.type === "call_finished" && entry.continuity?.mode === "rendered")
      causes[entry.continuity.cause] = (causes[entry.continuity.cause] ?? 0) + 1;
  return causes;
}
