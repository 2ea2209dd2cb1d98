/**
 * `structured_outputs` is vLLM's name for "sample under this grammar"; sessions force it by that name on any engine.
 * Other servers want the same under names of their own.
 */
import { z } from "zod";
import { AlidadeError } from "../errors.ts";

export type Grammar =
  | { kind: "choice"; choice: string[] }
  | { kind: "regex"; regex: string }
  | { kind: "json"; json: unknown }
  | { kind: "grammar"; grammar: string };

/** null where nothing was asked for. Throws `request_invalid` for what is none of the four. */
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
