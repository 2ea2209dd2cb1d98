/**
 * Real harnesses behind a real vLLM whose model plays by itself: nothing is forced, so what is recorded is what a policy
 * samples, slips and all. Each conversation only grows; what becomes of its tokens is counted with continuity off and on,
 * and every token is proven twice: against the relay, and by vLLM's own scoring of the whole sequence.
 *
 * A free policy may give its last word early. Then the harness is told to go on in the same conversation.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { SessionSpec } from "../../base/schema/session-spec.ts";
import type { PlayingHarness } from "../interop/vllm/plays.ts";
import { startVllm } from "../interop/vllm/start.ts";
import { need } from "../needs.ts";
import { playByItself } from "./play-by-itself.ts";
import { proveLogprobs } from "./prove-logprobs.ts";
import { counted, ofTheHarness, proveContinuity, proveTokens, toleranceOverTurns } from "./prove-self-played.ts";

/** How many turns with tools a session has. One turn without tools ends it. Twenty turns take four minutes more and show nothing new. */
const turns = Number(process.env.ALIDADE_TEST_TURNS ?? 10);
/** Codex's prompt is longer than any in the training. After it, the model ends every seventh turn too early. */
const goOn = { calls: turns, most: 12 };
/**
 * mini-swe-agent cannot be told to go on, so its turns are those of all its sessions: how early a free policy ends one depends on the
 * machine that the model was taught on. The others reach them in one session.
 */
const mostSessions = 8;

const modes = {
  off: { continuity: "off" },
  on: { continuity: "auto" },
  full: { continuity: "auto", restore: "full" },
} as const satisfies Record<string, Partial<SessionSpec>>;
type Mode = keyof typeof modes;

const harnesses: PlayingHarness[] = ["pi", "codex", "claude-code", "mini-swe-agent"];

for (const harness of harnesses)
  test(`${harness} plays ${turns} turns by itself, and every token is what it was sampled on`, { timeout: 600_000 }, async (t) => {
    if (!(await need(t, "vllm"))) return;
    await using vllm = await startVllm(t.signal);
    const playedIn = async (mode: Mode) => {
      let reached = 0;
      for (let session = 0; session < mostSessions && reached < turns; session++) {
        const one = await playByItself(t, { harness, vllm, turns, goOn, spec: modes[mode] });
        if (one === null) return;
        proveTokens(one);
        if (mode !== "off") proveContinuity(one, ofTheHarness);
        const { worst } = await proveLogprobs(vllm, one.trajectory, { tolerance: toleranceOverTurns, signal: t.signal });
        t.diagnostic(JSON.stringify({ mode, ...counted(one), worst }));
        const { length } = one.trajectory.calls;
        reached = harness === "mini-swe-agent" ? reached + length : Math.max(reached, length);
      }
      assert.ok(reached >= turns, `${mode}: ${reached} turns`);
    };
    await Promise.all((Object.keys(modes) as Mode[]).map(playedIn));
  });
