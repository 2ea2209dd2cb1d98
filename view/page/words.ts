/** Formats numbers and words the same way on every page. */
import { type Markup, markup } from "./markup.ts";

export const number = (value: number | null): string => (value === null ? "–" : value.toLocaleString("en"));
/** Writes `1 task`, `2 tasks`. */
export const counted = (count: number, what: string): string => `${number(count)} ${what}${count === 1 ? "" : "s"}`;
export const spaced = (name: string): string => name.replaceAll("_", " ");

export function seconds(value: number | null): string {
  if (value === null) return "–";
  if (value < 10) return `${value.toFixed(1)} s`;
  return value < 120 ? `${Math.round(value)} s` : `${Math.round(value / 60)} min`;
}

/** Writes at most three digits after the decimal point. */
export function figure(value: number | null): string {
  return value === null ? "–" : String(Number(value.toFixed(3)));
}

export function percent(part: number, whole: number): string {
  return whole === 0 ? "–" : `${Math.round((100 * part) / whole)} %`;
}

/** Shows a reward with its colour: good, bad, or not measured. */
export function rewardPill(reward: number | null): Markup {
  const kind = reward === null ? "none" : reward > 0 ? (reward < 1 ? "part" : "good") : "bad";
  return markup`<span class="pill ${kind}">${reward === null ? "null" : figure(reward)}</span>`;
}

/** Sorts the largest first. */
export function sorted(counts: Record<string, number>): [string, number][] {
  return Object.entries(counts).sort(([, a], [, b]) => b - a);
}
