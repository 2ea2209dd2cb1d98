import { messageOf } from "../base/errors.ts";
import type { GraderSampler, OpenSampler } from "../graders/index.ts";
import type { HarnessProxy } from "../proxy/index.ts";

/** Sessions for graders that ask models: recorded, and never trained. One that cannot be sealed costs no verdict. */
export function samplersOf(proxy: HarnessProxy, note: (text: string) => void): OpenSampler {
  return async (task_id, grades) => {
    const { session, key } = await proxy.openSession({ purpose: "judge", task_id, labels: { grades } });
    return {
      url: proxy.url,
      key,
      session_id: session.id,
      model: proxy.facts.models[0] ?? "model",
      tokenizers: (model) => tokenizersAt(proxy, model),
      [Symbol.asyncDispose]: () =>
        proxy.sessions.close(session, `${grades} is graded`).catch((error: unknown) => {
          note(`${grades}: the grader's session ${session.id} could not be sealed: ${messageOf(error)}`);
        }),
    };
  };
}

/** One engine for each tokenizer. Where no engine serves the model by that name, a call of it may go to any. */
export function tokenizersAt({ pool }: Pick<HarnessProxy, "pool">, model: string): ReturnType<GraderSampler["tokenizers"]> {
  const serving = pool.slots.filter((slot) => slot.serves(model));
  const found = new Map<string, ReturnType<GraderSampler["tokenizers"]>[number]>();
  for (const { name, engine, facts } of serving.length > 0 ? serving : pool.slots) {
    const fingerprint = facts.fingerprints?.tokenizer ?? null;
    const own = serving.length > 0 ? model : (facts.models[0] ?? model);
    const { tokenize, detokenize } = engine;
    const tokenizer =
      fingerprint === null || tokenize === undefined || detokenize === undefined
        ? null
        : {
            tokenize: (text: string, signal: AbortSignal) => tokenize.call(engine, own, { text }, signal),
            detokenize: (ids: number[], signal: AbortSignal) => detokenize.call(engine, own, ids, signal),
          };
    found.set(`${own} ${fingerprint ?? name}`, { engine: name, tokenizer });
  }
  return [...found.values()];
}
