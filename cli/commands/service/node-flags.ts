/** Flags of the verbs that make rollouts for a ledger. */
import type { Command } from "commander";
import { AlidadeError } from "../../../base/errors.ts";
import type { ProgressEvent } from "../../../rollouts/index.ts";
import type { Config } from "../../config.ts";
import { toNumber } from "../command-line.ts";
import { addRolloutFlags, type RolloutFlags } from "../flags/rollout-flags.ts";
import { liveProgress } from "../run/live-progress.ts";

export function addNodeFlags(command: Command): Command {
  return addRolloutFlags(command, {
    harness: "a set may name another built-in one",
    unsafeHost: ": a holder of the token runs commands as you",
    out: "what is recorded",
  }).option(
    "--expire-logs-after <hours>",
    "remove session logs and works of this machine that were last written so long ago (default: never)",
    toNumber,
  );
}

export type NodeFlags = RolloutFlags & { expireLogsAfter?: number };

/** Seconds; null: they stay. A work is graded within the hour. Throws `config_invalid`. */
export function logsExpireAfter({ expireLogsAfter }: NodeFlags): number | null {
  if (expireLogsAfter === undefined) return null;
  if (expireLogsAfter >= 1) return expireLogsAfter * 3600;
  throw new AlidadeError("config_invalid", `--expire-logs-after is ${expireLogsAfter}: give hours, 1 or more`, {
    param: "expire_logs_after",
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
