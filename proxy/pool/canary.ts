/**
 * A question of our own to an engine, the same each time: one token of a short prompt. No words of a session are in it, so
 * what becomes of it says how the engine is, where a failed call may only say what it was asked.
 */

import { type AlidadeError, asAlidadeError } from "../../base/errors.ts";
import { newId } from "../../base/schema/ids.ts";
import type { Engine, SampleRequest } from "../../engines/index.ts";
import { isAlive } from "./engine-health.ts";

/**
 * `answers`: it samples, or refuses this for a reason that is no failure. `slow`: it does so late. `busy`: it is alive and
 * has no time, or no room. `fails`: no connection, a 5xx, or silence.
 */
export type EngineState = "answers" | "slow" | "busy" | "fails";

/** A server that is at work on a full batch samples one token in well under a second. */
const slowMs = 2_000;

/** What is still waiting in a queue then would be for long. */
const answerWithinMs = 20_000;

/** The prompt of every canary. */
export const canaryText = "Say hello.";

/** Throws the signal's reason only. `model`: the engine's own name of it. */
export async function askCanary(engine: Engine, model: string, signal: AbortSignal): Promise<EngineState> {
  const late = AbortSignal.timeout(answerWithinMs);
  const sentAt = performance.now();
  try {
    // Read to its end: an answer that breaks off is none.
    for await (const event of engine.sample(canary(model), AbortSignal.any([signal, late])))
      if (event.type === "end" && (event.finish_reason === "abort" || event.finish_reason === "error")) return "fails";
    return performance.now() - sentAt > slowMs ? "slow" : "answers";
  } catch (error) {
    signal.throwIfAborted();
    if (late.aborted) return (await isAlive(engine.baseUrl, signal)) ? "busy" : "fails";
    return stateBehind(asAlidadeError(error, "engine_error"));
  }
}

function canary(model: string): SampleRequest {
  return {
    model,
    messages: [{ role: "user", parts: [{ type: "text", text: canaryText }] }],
    tools: [],
    tool_choice: null,
    sampling: { max_tokens: 1 },
    call_id: newId("canary"),
  };
}

function stateBehind(failure: AlidadeError): EngineState {
  if (failure.status === 429) return "busy";
  return failure.owner === "infrastructure" ? "fails" : "answers";
}
