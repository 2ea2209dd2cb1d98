/** A comparison of two sessions for a person. */
import { table } from "../text/table.ts";
import { visibleText } from "../text/visible-text.ts";
import type { PairedCall, SessionDiff, SessionLengths } from "./compare-sessions.ts";

/** Stretches that are listed; two sessions that part early differ in too many to read. */
const mostListed = 40;

export function renderDiff({ same, calls, parting, alignment }: SessionDiff): string {
  if (same) return `The two sessions are the same, ${howCompared(calls)}: ${calls.length} calls.`;
  const sections = [];
  if (parting !== null) {
    const at = parting.where === "missing" ? "" : `, ${parting.where}${positionOf(parting.pair[parting.where])}`;
    const lines = [`They part at turn ${parting.pair.turn_a ?? "–"} of A and turn ${parting.pair.turn_b ?? "–"} of B${at}: ${parting.why}`];
    if (parting.a !== null || parting.b !== null) lines.push(`  A: ${quote(parting.a)}`, `  B: ${quote(parting.b)}`);
    sections.push(lines.join("\n"));
  }
  sections.push(table(["turn of A", "turn of B", "prompt", "sample"], calls.map(toRow)));
  if (alignment !== null) sections.push(renderAlignment(alignment));
  return sections.join("\n\n");
}

/** Without token ids on both sides only the texts are compared. */
function howCompared(calls: PairedCall[]): string {
  const inWords = calls.filter(({ prompt, sample }) => prompt === null || sample === null).length;
  if (inWords === 0) return "token by token";
  return inWords === calls.length
    ? "by their messages (no token ids)"
    : `token by token, ${inWords} of them by their messages (no token ids)`;
}

function positionOf(lengths: SessionLengths | null): string {
  return lengths === null ? "" : ` at token ${lengths.shared.toLocaleString("en")}`;
}

function toRow({ turn_a, turn_b, prompt, sample }: PairedCall): (string | number | null)[] {
  return [turn_a, turn_b, ...[prompt, sample].map(describeLengths)];
}

function describeLengths(lengths: SessionLengths | null): string {
  if (lengths === null) return "no token ids";
  const { a, b, shared } = lengths;
  if (a === b && b === shared) return `same, ${a.toLocaleString("en")}`;
  return `${shared.toLocaleString("en")} shared of ${a.toLocaleString("en")} and ${b.toLocaleString("en")}`;
}

function renderAlignment({ trace_a, trace_b, stretches }: NonNullable<SessionDiff["alignment"]>): string {
  const total = (kept: typeof stretches, side: "a" | "b") => kept.reduce((sum, { [side]: [from, to] }) => sum + to - from, 0);
  const equal = stretches.filter((stretch) => stretch.same);
  const head = `Aligned token by token, the longest conversations (${visibleText(trace_a)} of A, ${visibleText(trace_b)} of B) share ${total(equal, "a").toLocaleString("en")} of ${total(stretches, "a").toLocaleString("en")} and ${total(stretches, "b").toLocaleString("en")} tokens:`;
  const rows = stretches
    .slice(0, mostListed)
    .map(({ same, a, b, in_a, in_b }) => [same ? "same" : "other", range(a), in_a, range(b), in_b]);
  const more = stretches.length > mostListed ? `\n… and ${stretches.length - mostListed} more stretches` : "";
  return `${head}\n\n${table(["", "tokens of A", "", "tokens of B", ""], rows)}${more}`;
}

function range([from, to]: [number, number]): string {
  return from === to ? "none" : `${from.toLocaleString("en")} to ${(to - 1).toLocaleString("en")}`;
}

const quote = (text: string | null): string => (text === null ? "(nothing)" : JSON.stringify(visibleText(text)));
