/** Patterns that cannot hang: each text is tried in a process that is killed. */
import { z } from "zod";
import { askChild } from "./ask-child.ts";

/** As JavaScript reads it with the flag `u`; `(?i:…)` and `^`, `$` are the pattern's own. */
export const Pattern = z.string().min(1).max(2_000).refine(isPattern, "give a regular expression of JavaScript (flag u)");

function isPattern(text: string): boolean {
  try {
    return new RegExp(text, "u") instanceof RegExp;
  } catch {
    return false;
  }
}

/** A text of a model's or a file that is longer is no answer to a pattern. */
const longestText = 200_000;

/** For each text whether the pattern finds something there; null where that was not decided in time. */
export async function matches(pattern: string, texts: readonly string[], signal: AbortSignal): Promise<(boolean | null)[]> {
  if (texts.length === 0) return [];
  const { answers } = await askChild({ kind: "pattern", pattern, texts: texts.map((text) => text.slice(0, longestText)) }, signal);
  return texts.map((_, index) => (typeof answers[index] === "boolean" ? answers[index] : null));
}
