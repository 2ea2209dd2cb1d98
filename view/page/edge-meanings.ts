/** Explains how a call's prompt continues an earlier turn, for hints. */
import type { EdgeMatch } from "../../base/schema/trajectory.ts";

export const edgeMeanings: Record<EdgeMatch, string> = {
  root: "root: the call has no earlier turn",
  exact: "exact: the prompt begins with the same tokens as that turn's prompt and answer",
  same_text: "same text: the prompt spells that turn's text in other tokens",
  diverged: "diverged: the prompt differs from that turn's prompt and answer, so a branch begins here",
  unknown: "unknown: there are no token ids, or they could not be decoded",
};
