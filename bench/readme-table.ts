/** The table of figures in the README: made of a report, and read again by the test that refuses old ones. */
import type { Report, Row } from "./proxy-overhead/table.ts";

type Contestant = Row["contestants"][number];

const begin = "<!-- figures: node bench/readme-figures.ts --write -->";
const end = "<!-- end of the figures -->";

/** Between the marks of the README. */
export function readmeTable(report: Report): string {
  const contestants = report.rows[0]?.contestants ?? [];
  const shown = ["alidade", "pass-through", ...contestants.map(({ name }) => name).filter((name) => name.startsWith("Polar "))];
  const lines = shown.flatMap((name) => contestants.filter((one) => one.name === name)).map((one) => lineOf(one, report));
  const peers = shown.length > 2 ? "" : " Polar's gateway was not in this run.";
  return [
    `| 120 kB request, 30 k prompt tokens, one process | commit | added latency p50 | CPU a call | calls/s at ${report.concurrent} clients | token ids kept |`,
    "| --- | --- | --- | --- | --- | --- |",
    ...lines,
    "",
    `One run of ${report.rounds} interleaved rounds, medians; × is to the pass-through of the same round. ${report.machine}, Node ${report.node}, load ${report.load.toFixed(1)} to ${report.loadAfter.toFixed(1)}.${peers} [How](docs/benchmarks.md#the-table-in-the-readme).`,
  ].join("\n");
}

/** The commit is ours, also beside a peer: its own stands in its name. */
function lineOf(one: Contestant, { commit }: Report): string {
  const names: Record<string, string> = { alidade: "**Alidade**, durable", "pass-through": "a bare pass-through, nothing kept" };
  const cells = [
    names[one.name] ?? one.name,
    `\`${commit}\``,
    figure(one.addedMs?.median, "ms", one.addedRatio?.median),
    figure(one.cpuMs?.median, "ms", one.cpuRatio?.median),
    figure(one.callsAtMany?.median, "", one.callsRatio?.median),
    one.name === "pass-through" ? "no" : "yes",
  ];
  return `| ${cells.join(" | ")} |`;
}

function figure(value: number | undefined, unit: string, ratio: number | undefined): string {
  if (value === undefined) return "unknown";
  const digits = value >= 100 ? value.toFixed(0) : value.toFixed(unit === "" ? 0 : 2);
  return [`${digits} ${unit}`.trim(), ...(ratio === undefined ? [] : [`${ratio.toFixed(ratio < 1 ? 2 : 1)} ×`])].join(", ");
}

export function withTable(readme: string, table: string): string {
  const { before, after } = parted(readme);
  return `${before}${begin}\n\n${table}\n\n${end}${after}`;
}

/** The commit of each row; null if a row names none. */
export function commitsOf(readme: string): (string | null)[] {
  const rows = parted(readme)
    .table.split("\n")
    .filter((line) => line.startsWith("|"));
  return rows.slice(2).map((line) => /^\| [^|]+ \| `([0-9a-f]{7,40})` \|/.exec(line)?.[1] ?? null);
}

function parted(readme: string): { before: string; table: string; after: string } {
  const [from, to] = [readme.indexOf(begin), readme.indexOf(end)];
  if (from === -1 || to < from) throw new Error(`README.md lacks the line ${from === -1 ? begin : end}`);
  return { before: readme.slice(0, from), table: readme.slice(from + begin.length, to), after: readme.slice(to + end.length) };
}
