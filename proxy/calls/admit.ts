/** May this call be made, and with what sampling? Budgets first, then the parameters that the engine really gets. */
import { AlidadeError } from "../../base/errors.ts";
import { bendingParameters, type Sampling } from "../../base/schema/message.ts";
import type { SessionSpec } from "../../base/schema/session-spec.ts";
import type { EnginePool } from "../pool/engine-pool.ts";
import type { EngineSlot } from "../pool/engine-slot.ts";
import type { Wish } from "../pool/own-model.ts";
import { grammarWithheld } from "../sandboxed/without-grammar.ts";
import { seedWithheld } from "../sandboxed/without-seed.ts";
import type { Call } from "../session/call.ts";
import { secondsBetween } from "../session/pausable-clock.ts";
import type { Session } from "../session/session.ts";
import type { BudgetName } from "../session/spent.ts";
import { derivedSeed } from "./derived-seed.ts";
import type { IdentifiedRequest } from "./identify.ts";

/**
 * The sampling parameters of a training call, whatever the harness requests: the distribution that the recorded logprobs
 * belong to. All are sent explicitly, because a server's generation_config.json changes missing ones.
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

export type AdmittedCall = {
  /** The failed call that this one repeats. */
  retryOf: Call | null;
  wish: Wish;
  /** Where it would go now; it may wait at a gate, and go elsewhere. */
  slot: EngineSlot;
  sampling: Sampling;
};

/**
 * Does not wait, so that concurrent calls cannot both take the rest of a budget. `near`: the preferred engines. Throws
 * `budget_spent`, and the errors of the pool's `choose`.
 */
export function admit(
  session: Session,
  { request, labels }: Pick<IdentifiedRequest, "request" | "labels">,
  retryOf: Call | null,
  pool: EnginePool,
  near?: readonly string[],
): AdmittedCall {
  // What a spent budget cut is no failure of an engine: to ask for it again is to ask for more.
  assertWithinBudgets(session, Date.now(), retryOf !== null && retryOf.outcome?.error?.code !== "budget_spent");
  const wish = { session, model: request.model, agent: labels.agent, request_class: labels.request_class, near };
  const slot = pool.choose(wish);
  return { retryOf, wish, slot, sampling: effectiveSampling(request.sampling, session.spec, placeOf(session, labels, retryOf)) };
}

/**
 * Throws `budget_spent` naming the budget, its limit and what was used. The harness's repetition of a failed call is no
 * turn of its own, and what failed was charged no tokens; but it takes a place at the engine like any other, and time
 * goes by for it too, or a failing engine would keep a patient harness for ever.
 */
function assertWithinBudgets(session: Session, now: number, isRepetition: boolean): void {
  const { spent, spec } = session;
  const over = (name: BudgetName, used: number): void => {
    if (used >= (spec.budgets[name] ?? Number.POSITIVE_INFINITY)) throw budgetSpent(spec, name, used);
  };
  if (spec.budgets.max_wall_seconds !== undefined) over("max_wall_seconds", secondsSpent(session, now));
  if (!isRepetition) {
    over("max_turns", spent.turns);
    over("max_prompt_tokens", spent.promptTokens);
    over("max_sampled_tokens", spent.sampledTokens);
  }
  over("max_concurrent_calls", session.running.inFlight().length);
}

/** Throws `budget_spent` where so many calls at once are more than the session may have: none of them is begun then. */
export function assertPlacesFor({ spec, running }: Session, calls: number): void {
  const { max_concurrent_calls: limit } = spec.budgets;
  const wanted = running.inFlight().length + calls;
  if (limit !== undefined && wanted > limit) throw budgetSpent(spec, "max_concurrent_calls", wanted);
}

/** Throws `budget_spent` where the log has reached its limit, so that no more calls are recorded. */
export function assertLogHasRoom(session: Session): void {
  const { max_log_bytes: limit } = session.spec.budgets;
  if (limit !== undefined && session.logBytes >= limit) throw budgetSpent(session.spec, "max_log_bytes", session.logBytes);
}

/** The refusal that ends a session, on whose record it is the reason why (session/spent.ts). */
export function budgetSpent({ budgets }: SessionSpec, name: BudgetName, used: number): AlidadeError {
  // No id in it: Pi takes any 500 or 429 among its characters for a reason to try again, unless it reads "out of budget".
  const message = `out of budget: this session has spent its budget ${name}: ${used} of ${budgets[name]}`;
  return new AlidadeError("budget_spent", message, { param: name });
}

/** Seconds since the first call, without the time of weight updates. */
function secondsSpent(session: Session, now: number): number {
  const from = session.spent.firstCall;
  return from === null ? 0 : secondsBetween(session, from, now);
}

/** `before`: calls of the same kind that had begun. Each kind counts alone, for side calls run beside turns in any order. */
type CallPlace = { isTurn: boolean; before: number };

/** The sampling that the engine gets. */
function effectiveSampling(requested: Sampling, spec: SessionSpec, place: CallPlace): Sampling {
  const neutral = spec.purpose === "train" ? unbent(requested) : {};
  const withheld = { ...grammarWithheld(spec, requested), ...seedWithheld(spec, requested) };
  return { ...requested, ...neutral, ...withheld, ...forcedSampling(spec, place), ...ownSeed(spec, place) };
}

/** A constant one would give each turn of a rollout the same random numbers. */
function ownSeed({ seed, task_id, sample_index }: SessionSpec, { isTurn, before }: CallPlace): Sampling {
  return seed === null ? {} : { seed: derivedSeed(seed, task_id, sample_index, isTurn ? "turn" : "other", before) };
}

function unbent(requested: Sampling): Sampling {
  const bent = bendingParameters.filter((name) => requested[name] !== undefined);
  return { ...neutralSampling, ...Object.fromEntries(bent.map((name) => [name, undefined])) };
}

/** A list applies to the main agent's turns only. */
function forcedSampling({ sampling }: SessionSpec, { isTurn, before }: CallPlace): Sampling {
  if (!Array.isArray(sampling)) return sampling;
  return isTurn ? (sampling[Math.min(before, sampling.length - 1)] ?? {}) : {};
}

/** A repetition of a failed call has the place of that call. */
function placeOf(session: Session, labels: Pick<IdentifiedRequest["labels"], "agent" | "request_class">, retryOf: Call | null): CallPlace {
  const isTurn = isTurnOfMain(labels);
  const first = retryOf && firstTry(session, retryOf);
  let before = 0;
  for (const call of session.calls()) {
    if (call === first) break;
    if (call.begun.retry_of === null && isTurnOfMain(call.begun) === isTurn) before++;
  }
  return { isTurn, before };
}

function isTurnOfMain({ agent, request_class }: { agent: string; request_class: string }): boolean {
  return agent === "main" && request_class === "main";
}

/** The harness may have gone on with other turns before it repeats one, and may repeat it again and again. */
function firstTry(session: Session, call: Call): Call {
  let first = call;
  for (let earlier: Call | undefined = call; earlier; earlier = session.call(earlier.begun.retry_of)) first = earlier;
  return first;
}
