/** What watches a verb at work: spans, and lines of a log for machines. Without either nothing is loaded and nothing is told. */

import type { Watcher } from "../../../base/schema/watcher.ts";
import { version } from "../../../base/version.ts";
import type { MetricFamily } from "../../../base/wire/prometheus-text.ts";
import { failureText, type ProxyOptions } from "../../../proxy/index.ts";
import { lineOfAttempt, lineOfCall, lineOfSet, ObservedTimes, openSpans, ProcessMetrics } from "../../../service/watch/index.ts";
import type { Config } from "../../config.ts";
import { sayIn } from "../command-line.ts";
import { type Terminal, terminal } from "../terminal.ts";

export type Watching = AsyncDisposable & Pick<ProxyOptions, "onError"> & { watcher?: Watcher; families?: () => MetricFamily[] };

/**
 * From here on the verb speaks in the form of its log. `isMonitored`: the verb has a route for a monitor, so times and the
 * process are measured for it (`families`). Throws `config_invalid` where spans need packages that are not installed.
 */
export async function openWatching(
  { otel, log_format }: Pick<Config, "otel" | "log_format">,
  { isMonitored = false }: { isMonitored?: boolean } = {},
): Promise<Watching> {
  const here = terminal();
  here.logFormat = log_format;
  const spans = otel === undefined ? null : await openSpans({ url: otel, version, note: (text) => sayIn(here, `alidade: ${text}`) });
  const lines = log_format === "json" ? linesIn(here) : null;
  const measures = isMonitored ? { times: new ObservedTimes(), own: new ProcessMetrics() } : null;
  const watchers = [spans, lines, measures?.times ?? null].filter((one) => one !== null);
  return {
    ...(watchers.length > 0 && { watcher: joined(watchers) }),
    ...(log_format === "json" && { onError: failuresIn(here) }),
    ...(measures && { families: () => [...measures.times.families(), ...measures.own.families()] }),
    [Symbol.asyncDispose]: async () => {
      measures?.own[Symbol.dispose]();
      await spans?.[Symbol.asyncDispose]();
    },
  };
}

export const unwatched: Watching = { [Symbol.asyncDispose]: async () => undefined };

function linesIn(here: Terminal): Watcher {
  return {
    call: (call) => sayIn(here, lineOfCall(call)),
    attempt: (attempt) => sayIn(here, lineOfAttempt(attempt)),
    set: (set) => sayIn(here, lineOfSet(set)),
  };
}

function joined(watchers: readonly Watcher[]): Watcher {
  return {
    call: (call) => watchers.forEach((one) => void one.call(call)),
    attempt: (attempt) => watchers.forEach((one) => void one.attempt(attempt)),
    set: (set) => watchers.forEach((one) => void one.set(set)),
  };
}

function failuresIn(here: Terminal): NonNullable<ProxyOptions["onError"]> {
  return (error, what) => sayIn(here, { level: "error", event: "failure", message: failureText(error, what) });
}
