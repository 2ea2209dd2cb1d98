/** Lines of a log for machines: one JSON object an event, with the ids that join it to records and spans. */

import type { EndedAttempt, EndedCall, WatchedSet } from "../../base/schema/watcher.ts";
import { hideSecrets } from "../../base/wire/secrets.ts";
import { boundedText } from "./recorded-span.ts";

export type LogLevel = "info" | "warn" | "error";
type LogValue = string | number | null;

/** `event` says what kind of line it is; `message` is a sentence for people. All else is an id, a number or a word. */
export type EventLine = { level: LogLevel; event: string; message: string } & Record<string, LogValue>;

/** The line as it is written, with its time and without secrets. */
export function textOfLine(line: EventLine, now: number = Date.now()): string {
  const text = hideSecrets(JSON.stringify({ time: new Date(now).toISOString(), ...line })).toWellFormed();
  return text.replace(acting, (character) =>
    Array.from({ length: character.length }, (_, at) => unicodeEscape(character.charCodeAt(at))).join(""),
  );
}

/** What acts on a terminal that shows the log, and that JSON leaves as it is. */
const acting = /[\u007f-\u009f\p{Cf}\p{Zl}\p{Zp}]/gu;

function unicodeEscape(code: number): string {
  return `\\u${code.toString(16).padStart(4, "0")}`;
}

export function lineOfCall({ session_id, spec, begun, tries, outcome }: EndedCall): EventLine {
  const { error, usage, policy } = outcome;
  return {
    level: error === null ? "info" : "warn",
    event: "call",
    message: error === null ? `call ${begun.ordinal} ended` : boundedText(`call ${begun.ordinal} failed: ${error.code}: ${error.message}`),
    rollout_id: spec.rollout_id,
    attempt: spec.attempt,
    session_id,
    call_id: begun.call_id,
    engine: tries.at(-1)?.engine_name ?? null,
    model: boundedText(begun.model),
    policy: policy?.version ?? null,
    tries: tries.length,
    milliseconds: outcome.time - begun.time,
    prompt_tokens: usage.prompt_tokens,
    sampled_tokens: usage.sampled_tokens,
    finish_reason: outcome.finish_reason,
    error: error?.code ?? null,
  };
}

export function lineOfAttempt({ set_id, record, stored }: EndedAttempt): EventLine {
  const { verdict, summary } = record;
  const error = record.error ?? verdict?.error ?? null;
  const reward = verdict?.reward ?? null;
  return {
    level: error === null ? "info" : "warn",
    event: "rollout_done",
    message: boundedText(error === null ? `reward ${reward}` : `reward ${reward}, ${error.code}: ${error.message}`),
    set_id,
    group_id: record.group_id,
    rollout_id: record.rollout_id,
    attempt: record.attempt,
    session_id: record.session_id,
    task_id: record.task_id,
    harness: record.harness,
    milliseconds: stored - (record.times.queued ?? stored),
    reward,
    stop_reason: record.stop_reason,
    mask_reason: record.mask_reason,
    turns: summary?.turns ?? null,
    sampled_tokens: summary?.sampled_tokens ?? null,
    error: error?.code ?? null,
  };
}

export function lineOfSet({ set_id, key, harness, purpose }: WatchedSet): EventLine {
  return { level: "info", event: "set", message: boundedText(`set ${key ?? set_id}`), set_id, key, harness, purpose };
}
