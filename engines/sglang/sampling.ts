/** Sampling parameters under SGLang's names. */
import type { Sampling } from "../../base/schema/message.ts";
import { choicePattern, readGrammar } from "../chat/grammar.ts";

/** OpenAI's for a plain prompt, and vLLM's; SGLang's own is another. */
const defaultMaxTokens = 16;

/** For its chat route. 0 is no `top_k`, and refused; -1 is one. */
export function toSglangSampling(sampling: Sampling): Record<string, unknown> {
  const { structured_outputs, top_k, ...rest } = sampling;
  const fields = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== undefined));
  return { ...fields, ...(top_k === undefined ? {} : { top_k: top_k === 0 ? -1 : top_k }), ...toGrammar(structured_outputs) };
}

function toGrammar(structured: unknown): Record<string, unknown> {
  const grammar = readGrammar(structured);
  switch (grammar?.kind) {
    case undefined:
      return {};
    case "choice":
      return { regex: choicePattern(grammar.choice) };
    case "regex":
      return { regex: grammar.regex };
    case "grammar":
      return { ebnf: grammar.grammar };
    case "json":
      return { response_format: { type: "json_schema", json_schema: { name: "answer", schema: grammar.json } } };
  }
}

/** For `/generate`, where what is about tools and templates has no place. */
export function toGenerateSampling(sampling: Sampling): Record<string, unknown> {
  const { reasoning_effort: _, parallel_tool_calls: __, max_tokens, seed, structured_outputs, ...rest } = sampling;
  const grammar = readGrammar(structured_outputs);
  return {
    ...toSglangSampling(grammar?.kind === "json" ? rest : { ...rest, structured_outputs }),
    ...(grammar?.kind === "json" ? { json_schema: JSON.stringify(grammar.json) } : {}),
    max_new_tokens: max_tokens ?? defaultMaxTokens,
    ...(seed === undefined ? {} : { sampling_seed: seed }),
  };
}
