/** Flags of the verbs that make rollouts for a ledger. */
import type { Command } from "commander";
import type { Config } from "../../config.ts";
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

/** With --json only notes are said, on stderr, unless the log is for machines too. The form of the log is set by then. */
export function nodeProgress({ json }: RolloutFlags, { log_format }: Pick<Config, "log_format">) {
  const show = liveProgress();
  const onProgress = (event: ProgressEvent): void => {
    if (!json || log_format === "json" || event.type === "note") show(event);
  };
  return { onProgress, note: (text: string): void => onProgress({ type: "note", text }) };
}
