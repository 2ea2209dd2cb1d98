/** Shows a sample of a group: its number and its reward. */
import type { Entry } from "../run/entries.ts";
import { type Markup, markup } from "./markup.ts";
import { figure, rewardPill } from "./words.ts";

export function samplePill({ sample_index, reward }: Entry): Markup {
  const name = sample_index ?? "?";
  return markup`<span title="sample ${name}: ${reward === null ? "no reward" : `reward ${figure(reward)}`}"><small>#${name}</small> ${rewardPill(reward)}</span>`;
}
