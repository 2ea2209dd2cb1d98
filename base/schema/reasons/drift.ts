/** Why a trainer's recomputed logprobs differ from the recorded ones, and by which evidence. */
import type { EdgeCause } from "../trajectory.ts";
import type { Meaning } from "./meaning.ts";

/** In the order in which they are looked for; the first that fits is given. */
export const driftCauses = {
  alignment: {
    what: "The trainer's numbers are the recorded ones moved by one token.",
    cure: "the trainer reads logprobs or masks at the wrong place: the logprob of token i is predicted at token i - 1",
  },
  policy: {
    what: "Other weights sampled it: the call spans a weight update, or the trainer names another policy than the call's.",
    cure: "recompute with the weights that sampled it; pause with `drain` before a weight update",
  },
  engine: {
    what: "Many tokens differ in calls whose context is exact from the root on, so tokens and context are no cause.",
    cure: "compare numerics (dtype, kernels, quantisation, logprobs mode) and the weights themselves; `alidade audit` asks the engine again",
  },
  template: {
    what: "Only calls behind a re-rendered or re-tokenised turn differ; those with an exact context agree.",
    cure: "train on rows of `--select strict` and on their token ids, not on text that the trainer renders itself; or use token continuity",
  },
  harness: {
    what: "Only calls behind a turn that the harness rewrote, dropped or added to differ; those with an exact context agree.",
    cure: "train on rows of `--select strict`, where a rewritten history is a branch of its own",
  },
  not_attributable: { what: "The record does not tell; the reason stands with the call.", cure: null },
} as const satisfies Record<string, Meaning>;

/** Whose doing it is that a context parts; null: either's. */
export const partedBy: Record<EdgeCause, "template" | "harness" | null> = {
  retokenised: "template",
  re_rendered: "template",
  truncated: "template",
  stop_string: "template",
  other_tokenizer: "template",
  reasoning_dropped: null,
  unknown: null,
  arguments_reserialised: "harness",
  arguments_changed: "harness",
  tool_calls_changed: "harness",
  injected: "harness",
  history_cleared: "harness",
  turn_dropped: "harness",
  edited: "harness",
  compacted: "harness",
  system_changed: "harness",
  tools_changed: "harness",
};
