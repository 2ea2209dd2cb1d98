/** Figures in Prometheus's text format (version 0.0.4): a HELP and a TYPE line for each name, then one line a sample. */

export type MetricFamily = {
  /** With its unit; `_total` at its end where it only grows. */
  name: string;
  type: "gauge" | "counter" | "histogram";
  help: string;
  samples: MetricSample[];
};
/** A value that is null is unknown, and has no line. `part`: which line of a histogram it is. */
export type MetricSample = { labels: Record<string, string>; value: number | null; part?: "_bucket" | "_sum" | "_count" };

/** One number. */
export function gauge(name: string, help: string, value: number): MetricFamily {
  return { name, type: "gauge", help, samples: [{ labels: {}, value }] };
}

export const prometheusType = "text/plain; version=0.0.4; charset=utf-8";

/** A trainer's key may have 500 characters, and the monitor keeps each label of each series. */
const maxLabel = 200;

export function prometheusText(families: readonly MetricFamily[]): string {
  return families.flatMap(({ name, type, help, samples }) => [head(name, type, help), ...samples.flatMap(line(name))]).join("");
}

function head(name: string, type: string, help: string): string {
  return `# HELP ${name} ${help.replaceAll("\\", "\\\\").replaceAll("\n", "\\n")}\n# TYPE ${name} ${type}\n`;
}

const line =
  (name: string) =>
  ({ labels, value, part }: MetricSample): string[] => {
    if (value === null || !Number.isFinite(value)) return [];
    const pairs = Object.entries(labels).map(([label, text]) => `${label}="${escaped(text)}"`);
    return [`${name}${part ?? ""}${pairs.length === 0 ? "" : `{${pairs.join(",")}}`} ${value}\n`];
  };

/** The format escapes three characters. Readers end at other control characters (Prometheus at NUL), so those are replaced. */
function escaped(text: string): string {
  return text
    .slice(0, maxLabel)
    .toWellFormed()
    .replaceAll(/[^\P{Cc}\n]/gu, "\ufffd")
    .replaceAll("\\", "\\\\")
    .replaceAll('"', '\\"')
    .replaceAll("\n", "\\n");
}
