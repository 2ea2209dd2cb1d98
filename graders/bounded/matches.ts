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

/** For each text whether the pattern finds something there; null where that was not decided in time, or the text is too long for it. */
export async function matches(pattern: string, texts: readonly string[], signal: AbortSignal): Promise<(boolean | null)[]> {
  const asked = texts.filter((text) => text.length <= longestText);
  if (asked.length === 0) return texts.map(() => null);
  const { answers } = await askChild({ kind: "pattern", pattern, texts: asked }, signal);
  const decided = answers.values();
  return texts.map((text) => {
    const found = text.length <= longestText ? decided.next().value : null;
    return typeof found === "boolean" ? found : null;
  });
}
