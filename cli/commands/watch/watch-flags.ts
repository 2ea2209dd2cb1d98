/** Flags of the verbs that are watched: spans and the form of the log. */
import { type Command, Option } from "commander";

export type WatchFlags = { otel?: string; logFormat?: string };

export function addWatchFlags(command: Command): Command {
  return command
    .option(
      "--otel <url>",
      "send OpenTelemetry spans to this receiver (OTLP over HTTP); `env`: the one that OTEL_EXPORTER_OTLP_ENDPOINT names",
    )
    .addOption(new Option("--log-format <form>", "what is said on stderr: text, or json with one object a line").choices(["text", "json"]));
}

/** As keys of the configuration. */
export function watchOf({ otel, logFormat }: WatchFlags): Record<string, unknown> {
  return { otel, log_format: logFormat };
}
