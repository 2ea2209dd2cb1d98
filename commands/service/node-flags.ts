/** Flags of the verbs that make rollouts for a ledger. */
import type { Command } from "commander";
import type { ProgressEvent } from "../../rollouts/index.ts";
import { addRolloutFlags, type RolloutFlags } from "../flags/rollout-flags.ts";
import { liveProgress } from "../run/live-progress.ts";

export function addNodeFlags(command: Command): Command {
  return addRolloutFlags(command, {
    harness: "a set may name another built-in one",
    unsafeHost: ": a holder of the token runs commands as you",
    out: "what is recorded",
  });
}

/** With --json only notes are said, on stderr. */
export function nodeProgress({ json }: RolloutFlags) {
  const show = liveProgress();
  const onProgress = (event: ProgressEvent): void => {
    if (!json || event.type === "note") show(event);
  };
  return { onProgress, note: (text: string): void => onProgress({ type: "note", text }) };
}
