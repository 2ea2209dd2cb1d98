/**
 * Real harnesses behind a real vLLM whose model plays by itself: nothing is forced, so what is recorded is what a policy
 * samples, slips and all. Each conversation only grows; what becomes of its tokens is counted with continuity off and on,
 * and every token is proven twice: against the relay, and by vLLM's own scoring of the whole sequence.
 *
 * A free policy may end a session early, so sessions are played until their turns add up.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { selectRows } from "../../reconstruct/index.ts";
import { verifyRows, verifyTrajectory } from "../../reconstruct/verify.ts";
import type { LogEntry, SessionSpec } from "../../schema/session-log.ts";
import type { PlayingHarness } from "../interop/vllm/plays.ts";
import { startVllm } from "../interop/vllm/start.ts";
import { need } from "../needs.ts";
import { playByItself, type SelfPlayed } from "./play-by-itself.ts";
import { proveLogprobs } from "./prove-logprobs.ts";

/** Turns with tools in a session that goes to its end; one with the last word follows. */
const turns = 20;
const mostSessions = 8;

/** Nats, over long sequences in float32: scored in one batch, sampled turn by turn over cached prefixes. */
const tolerance = 1e-3;

const modes = {
  off: { continuity: "off" },
  on: { continuity: "auto" },
  full: { continuity: "auto", restore: "full" },
} as const satisfies Record<string, Partial<SessionSpec>>;
type Mode = keyof typeof modes;

/** What a harness makes of a turn that it cannot use: it repairs a call, or leaves the turn out. */
const ofTheHarness = ["edited", "arguments_changed", "tool_calls_changed", "turn_dropped"];
const branches: Record<Exclude<Mode, "off">, string[]> = { on: [...ofTheHarness, "reasoning_dropped"], full: ofTheHarness };

const harnesses: PlayingHarness[] = ["pi", "codex", "claude-code", "mini-swe-agent"];

for (const harness of harnesses)
  test(`${harness} plays ${turns} turns by itself, and every token is what it was sampled on`, { timeout: 600_000 }, async (t) => {
    if (!(await need(t, "vllm"))) return;
    await using vllm = await startVllm(t.signal);
    const playedIn = async (mode: Mode) => {
      let played = 0;
      for (let session = 0; session < mostSessions && played < turns; session++) {
        const one = await playByItself(t, { harness, vllm, turns, spec: modes[mode] });
        if (one === null) return;
        proveTokens(one);
        if (mode !== "off") proveContinuity(one, branches[mode]);
        const { worst } = await proveLogprobs(vllm, one.trajectory, { tolerance, signal: t.signal });
        t.diagnostic(JSON.stringify({ mode, ...counted(one), worst }));
        played += one.trajectory.calls.length;
      }
      assert.ok(played >= turns, `${mode}: ${played} turns in ${mostSessions} sessions`);
    };
    await Promise.all((Object.keys(modes) as Mode[]).map(playedIn));
  });

function proveTokens({ trajectory, exchanges, unseen }: SelfPlayed): void {
  const report = verifyTrajectory(trajectory, exchanges);
  assert.deepEqual(report.mismatches, []);
  assert.equal(report.unclaimed_exchanges, 0);
  assert.equal(report.trainable_tokens, trajectory.fidelity.sampled_tokens, JSON.stringify(trajectory.fidelity));
  assert.deepEqual(verifyRows(trajectory, selectRows(trajectory).rows), []);
  assert.deepEqual(unseen, []);
}

/** Turns go on from the sampled tokens themselves, but for those that `causes` take away: a sequence ends with what nothing went on from. */
function proveContinuity({ trajectory, entries }: SelfPlayed, causes: string[]): void {
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
  const spliced = entries.filter((entry) => entry.type === "call_finished" && entry.continuity?.mode === "spliced");
  assert.equal(trajectory.calls.filter((call) => call.match === "exact").length, spliced.length);
}

function counted({ trajectory, entries, seconds, failed, ended }: SelfPlayed) {
  const { calls, fidelity, traces } = trajectory;
  const sum = (of: (call: (typeof calls)[number]) => number | null | undefined) =>
    calls.reduce((total, call) => total + (of(call) ?? 0), 0);
  return {
    calls: calls.length,
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
function renderCauses(entries: LogEntry[]): Record<string, number> {
  const causes: Record<string, number> = {};
  for (const entry of entries)
    if (entry.type === "call_finished" && entry.continuity?.mode === "rendered")
      causes[entry.continuity.cause] = (causes[entry.continuity.cause] ?? 0) + 1;
  return causes;
}
