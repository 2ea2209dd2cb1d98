/** May this call be made, and with what sampling? Budgets first, then the parameters that the engine really gets. */
import { AlidadeError } from "../errors.ts";
import type { Sampling } from "../schema/message.ts";
import type { SessionSpec } from "../schema/session-log.ts";
import type { Session } from "./session.ts";

/**
 * What a training call is sampled with, whatever the harness asked for: the distribution whose logprobs are recorded.
 * All are sent explicitly, because a server's generation_config.json changes what is left out.
 */
export const neutralSampling = {
  temperature: 1,
  top_p: 1,
  top_k: -1,
  min_p: 0,
  presence_penalty: 0,
  frequency_penalty: 0,
  repetition_penalty: 1,
} as const satisfies Sampling;

/**
 * Throws `budget_spent` naming the budget, its limit and what was used. The harness's repetition of a failed call is
 * charged to no budget; but time goes by for it too, or a failing engine would keep a patient harness for ever.
 */
export function assertWithinBudgets(session: Session, now: number, isRepetition: boolean): void {
  const { budgets } = session.spec;
  const spent = spentBy(session);
  const over = (name: keyof typeof budgets, used: number, reached = used >= (budgets[name] ?? Number.POSITIVE_INFINITY)): void => {
    if (!reached) return;
    session.stopReason = "budget_spent";
    // No id in it: Pi takes any 500 or 429 among its characters for a reason to try again, unless it reads "out of budget".
    throw new AlidadeError("budget_spent", `out of budget: this session has spent its budget ${name}: ${used} of ${budgets[name]}`, {
      param: name,
    });
  };
  over("max_wall_seconds", spent.firstCall === null ? 0 : secondsOf(session, spent.firstCall, now));
  if (isRepetition) return;
  over("max_turns", session.turns);
  over("max_prompt_tokens", spent.promptTokens);
  over("max_sampled_tokens", spent.sampledTokens);
  over("max_concurrent_calls", session.inFlight.size);
}

/** A weight update is nobody's time. */
function secondsOf(session: Session, from: number, now: number): number {
  return (now - from - session.pausedSince(from, now)) / 1000;
}

function spentBy(session: Session): { promptTokens: number; sampledTokens: number; firstCall: number | null } {
  let promptTokens = 0;
  let sampledTokens = 0;
  let firstCall: number | null = null;
  for (const call of session.calls.values()) {
    promptTokens += call.finished?.usage.prompt_tokens ?? call.promptLength;
    sampledTokens += call.finished?.sampled_ids?.length ?? call.finished?.usage.sampled_tokens ?? 0;
    firstCall = Math.min(firstCall ?? call.begun.time, call.begun.time);
  }
  return { promptTokens, sampledTokens, firstCall };
}

/**
 * The sampling that the engine gets. `turn` is the 0-based turn of the main agent, or null for any other call: forced
 * parameters given as a list are a play of the main agent and none of anybody else's.
 */
export function effectiveSampling(requested: Sampling, spec: SessionSpec, turn: number | null): Sampling {
  return { ...requested, ...(spec.purpose === "train" ? withoutBias(requested) : {}), ...forcedSampling(spec, turn) };
}

function withoutBias(requested: Sampling): Sampling {
  return { ...neutralSampling, ...(requested.logit_bias === undefined ? {} : { logit_bias: undefined }) };
}

function forcedSampling(spec: SessionSpec, turn: number | null): Sampling {
  if (!Array.isArray(spec.sampling)) return spec.sampling;
  if (turn === null) return {};
  return spec.sampling[Math.min(turn, spec.sampling.length - 1)] ?? {};
}

/** How many turns the main agent has begun; a repetition of a failed call is the same turn. */
export function mainTurn(session: Session, agent: string, requestClass: string): number | null {
  if (agent !== "main" || requestClass !== "main") return null;
  let turn = 0;
  for (const { begun } of session.calls.values())
    if (begun.agent === "main" && begun.request_class === "main" && begun.retry_of === null) turn++;
  return turn;
}
