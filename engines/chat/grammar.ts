/**
 * `structured_outputs` is vLLM's name for "sample under this grammar"; sessions force it by that name on any engine.
 * Other servers want the same under names of their own.
 */
import { z } from "zod";
import { AlidadeError } from "../../base/errors.ts";
import type { Engine, SampleRequest } from "../engine.ts";

export type Grammar =
  | { kind: "choice"; choice: string[] }
  | { kind: "regex"; regex: string }
  | { kind: "json"; json: unknown }
  | { kind: "grammar"; grammar: string };

/** null without a grammar. Throws `request_invalid` for any other form than the four. */
export function readGrammar(structured: unknown): Grammar | null {
  if (structured === undefined || structured === null) return null;
  const given = Structured.safeParse(structured).data;
  const kinds = (["choice", "regex", "json", "grammar"] as const).filter((kind) => given?.[kind] !== undefined);
  if (!given || kinds.length !== 1)
    throw new AlidadeError(
      "request_invalid",
      `structured_outputs is ${JSON.stringify(structured).slice(0, 200)}: give one of choice (a list of texts), regex, json (a schema) or grammar`,
      { param: "structured_outputs" },
    );
  return { kind: kinds[0], ...given } as Grammar;
}

/**
 * Does a grammar restrict this request's sample or a part of it? The request decides, because no server reports it. vLLM
 * (0.32, `_apply_structural_tag`) and SGLang apply one where a tool must be called or is strict; vLLM also where only one
 * call is wanted, with any tool choice.
 */
export function isUnderGrammar(
  { sampling, tools, tool_choice }: Pick<SampleRequest, "sampling" | "tools" | "tool_choice">,
  engine: Pick<Engine, "holdsToolsToGrammar"> | null,
): boolean {
  if (grammarFields.some((field) => (sampling[field] ?? null) !== null)) return true;
  if (tools.length === 0 || tool_choice === "none") return false;
  return (
    engine?.holdsToolsToGrammar === true ||
    (tool_choice ?? "auto") !== "auto" ||
    tools.some(({ strict }) => strict === true) ||
    sampling.parallel_tool_calls === false
  );
}

/** Ours, the standard one, and those of vLLM, SGLang and llama.cpp that a session may force by their own names. */
export const grammarFields: readonly string[] = [
  ...["structured_outputs", "response_format", "guided_json", "guided_regex", "guided_choice", "guided_grammar"],
  ...["regex", "ebnf", "json_schema", "structural_tag", "grammar"],
];

/** A regular expression of exactly these texts. */
export function choicePattern(choice: readonly string[]): string {
  return `(${choice.map((text) => text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&").replaceAll("\n", "\\n")).join("|")})`;
}

/** A GBNF grammar (llama.cpp's) of exactly these texts. */
export function choiceGbnf(choice: readonly string[]): string {
  return `root ::= ${choice.map((text) => JSON.stringify(text)).join(" | ")}`;
}

const Structured = z.looseObject({
  choice: z.array(z.string()).min(1).optional(),
  regex: z.string().optional(),
  json: z.unknown().optional(),
  grammar: z.string().optional(),
});
