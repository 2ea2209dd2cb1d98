/** `alidade export`: a run's trajectories in a trainer's form. */
import { stat } from "node:fs/promises";
import { dirname, extname, join } from "node:path";
import type { Writable } from "node:stream";
import { type Command, Option } from "commander";
import { AlidadeError } from "../../../base/errors.ts";
import { MediaFolder, mediaFolder } from "../../../base/media/media-folder.ts";
import { copyNamed, hashesIn, namedBytes } from "../../../base/media/named-bytes.ts";
import { groupReasons, rolloutReasons } from "../../../base/schema/reasons/left-out.ts";
import { type Meaning, meaningOf } from "../../../base/schema/reasons/meaning.ts";
import { untrainedReasons } from "../../../base/schema/reasons/untrained.ts";
import { RequestClass } from "../../../base/schema/session-spec.ts";
import type { Trajectory } from "../../../base/schema/trajectory.ts";
import { type Exporter, type ExportReport, exporterRegistry, exporters, exportTrajectories } from "../../../exporters/index.ts";
import { toStoreError } from "../../../proxy/store/index.ts";
import { parseCutOffRules, selectionNamed, selections } from "../../../reconstruct/index.ts";
import { print, say, toNumber, toTemperature } from "../command-line.ts";
import { addOwnFlags, ownOptionsOf } from "../flags/export-flags.ts";
import { attemptsOf, trajectoriesOf } from "../overview/trajectories-of.ts";
import { terminal } from "../terminal.ts";
import { openOutput } from "./export-output.ts";
import { runFolderOf } from "./run-folder-of.ts";

type ExportFlags = {
  run?: string;
  format: string;
  out?: string;
  select?: string;
  maxTokens?: number;
  temperature?: number;
  oldestStep?: number;
  allowGrammar?: boolean;
  cutOff?: string[];
  unmeasured?: "null" | "zero";
  leaveOut?: string[];
  json?: boolean;
};

export function exportCommand(program: Command): void {
  const command = program
    .command("export")
    .description(
      `Writes one JSON object a line, or a binary file. The exit code is 1 where no row has a trained token; a file without rows is not written, and an\nolder one stays. Formats:\n${exporters.map((one) => `  ${one.name.padEnd(15)} ${one.title} (${one.objective})`).join("\n")}`,
    )
    .option("-r, --run <folder>", "folder of the run (default: the newest below runs/)")
    .option("-f, --format <name>", `${exporters.map((one) => one.name).join(", ")}, or the file of a plug-in`, "flat")
    .option("-o, --out <file>", "file to write (default, and -: standard output)")
    .addOption(new Option("--select <name>", "which paths of the token tree become rows").choices(selections.map((one) => one.name)))
    .option("--max-tokens <number>", "longest row; a longer one keeps its exact prefix up to a call boundary", toNumber)
    .option(
      "--temperature <number>",
      "the trainer's temperature: calls that were sampled at another one are left out. It also stands for calls without a recorded one (default: 1, and such calls are left out)",
      toTemperature,
    )
    .option("--oldest-step <number>", "tokens that an earlier policy step sampled, or an unknown one, are not trained", toNumber)
    .option("--allow-grammar", "take tokens that were sampled under a grammar: their logprobs hold under its mask only")
    .option(
      "--cut-off <rule...>",
      "CAUSE=train, CAUSE=mask, CAUSE=baseline, CAUSE=zero or CAUSE=penalise:NUMBER for rollouts that were cut off",
    )
    .addOption(
      new Option(
        "--unmeasured <worth>",
        "reward of work that was not measured, for grader, engine or machine failed or were too slow: null (in neither loss nor baseline, the default) or zero",
      ).choices(["null", "zero"]),
    )
    .option("--leave-out <class...>", `kinds of call that are not trained: ${RequestClass.options.join(", ")}`)
    .option("--json", "with --out: print the report as one JSON object")
    .addHelpText(
      "after",
      "\nExamples:\n  alidade export --format flat --out rows.jsonl\n  alidade export --format trl-grpo --group-size 8 --max-tokens 32768 -o grpo.jsonl\n  alidade export --run runs/run1abc --format chat > sft.jsonl",
    )
    .action(async ({ out, ...flags }: ExportFlags) => writeExport(out === "-" ? flags : { ...flags, ...given("out", out) }));
  addOwnFlags(command);
}

async function writeExport(flags: ExportFlags): Promise<void> {
  const exporter = await exporterRegistry.load(flags.format);
  const options = {
    ...given("strategy", flags.select === undefined ? undefined : selectionNamed(flags.select)),
    ...given("maxTokens", flags.maxTokens === undefined ? undefined : wholeNumber("max_tokens", flags.maxTokens)),
    ...given("temperature", flags.temperature),
    ...given("oldestStep", flags.oldestStep === undefined ? undefined : wholeNumber("oldest_step", flags.oldestStep)),
    ...given("allowGrammar", flags.allowGrammar),
    ...given("cutOff", flags.cutOff === undefined ? undefined : parseCutOffRules(flags.cutOff)),
    ...given("unmeasured", flags.unmeasured),
    ...given("leaveOut", flags.leaveOut?.map(requestClass)),
    own: ownOptionsOf(exporter, flags),
  };
  if (flags.out === undefined && exporter.extension !== "jsonl" && terminal().stdout.isTTY)
    throw new AlidadeError("config_invalid", `${exporter.name} is a binary file: name it with --out`, { param: "out" });
  if (flags.out !== undefined) assertExtension(exporter, flags.out);
  const folder = await runFolderOf(flags.run);
  if (flags.out !== undefined) await refuseRecords(folder, flags.out);
  let damaged = 0;
  const trajectories = trajectoriesOf(folder, (message, rollouts) => {
    say(`alidade: ${message}`);
    damaged += rollouts;
  });
  // The copy that groups are read from is as large as the run: beside the output there is room for such a file, but in
  // the folder of devices there is none.
  const scratch = flags.out === undefined || flags.out.startsWith("/dev/") ? {} : { scratch: dirname(flags.out) };
  const media = new MediaFolder(join(folder, "sessions", mediaFolder));
  // `kept`: hashes of the run's stored bytes. `named`: the hashes that the rows name; null if the format is not text.
  const kept = new Set<string>();
  let named: Set<string> | null = new Set();
  const onPart = (part: string | Uint8Array): void => {
    if (typeof part !== "string") named = null;
    else for (const sha256 of kept.size > 0 ? hashesIn(part) : []) named?.add(sha256);
  };
  const report = await writeTo(flags.out, async (stream, stop) => {
    const settings = {
      ...options,
      ...scratch,
      ...stop,
      attempts: attemptsOf(folder),
      media,
      onPart,
    };
    const written = await exportTrajectories(exporter, notingNamed(trajectories, kept), stream, settings);
    // Before the rows that name them: to standard output there is no place beside them.
    if ((exporter.namesPictures || exporter.saysSupport) && scratch.scratch !== undefined)
      copyNamed(named === null ? kept : kept.intersection(named), media, new MediaFolder(join(scratch.scratch, mediaFolder)));
    // An older file is not given up for one with nothing in it.
    if (damaged > 0 && written.trajectories === 0)
      throw new AlidadeError("store_error", `nothing of ${folder} is exported: none of its ${damaged} rollouts can be read`);
    return written;
  });
  if (damaged > 0) report.left_out_rollouts.damaged = damaged;
  if (flags.json && flags.out !== undefined) print(JSON.stringify({ out: report.rows > 0 ? flags.out : null, ...report }));
  else for (const line of inLines(report, flags.out)) say(line);
  if (isEmpty(report)) terminal().exitCode = 1;
}

async function* notingNamed(trajectories: AsyncIterable<Trajectory>, kept: Set<string>): AsyncGenerator<Trajectory> {
  for await (const trajectory of trajectories) {
    for (const sha256 of namedBytes(trajectory)) kept.add(sha256);
    yield trajectory;
  }
}

/** A reader goes by the name: it would take lines of JSON for a Parquet file, or the other way round. */
function assertExtension(exporter: Exporter, out: string): void {
  const named = extname(out).slice(1).toLowerCase();
  const formats = exporters.filter(({ extension }) => extension === named).map(({ name }) => name);
  if (formats.length === 0 || named === exporter.extension) return;
  const others = named === "jsonl" ? "a format that writes lines" : `--format ${formats.join(" or ")}`;
  const message = `--out is ${out}, and ${exporter.name} writes ${exporter.extension}: name it .${exporter.extension}, or take ${others}`;
  throw new AlidadeError("config_invalid", message, { param: "out" });
}

/** It writes no row, or only dummies, which train nothing. */
const isEmpty = (report: ExportReport): boolean => report.rows === report.dummy_rows;

/** One line of numbers; where nothing is trained that is said aloud; and each reason with what it means and its cure. */
function inLines(report: ExportReport, out: string | undefined): string[] {
  const kept = report.rows === 0 && out !== undefined ? `; ${out} is not written` : "";
  const loud = isEmpty(report) ? [`alidade: NOTHING TO TRAIN: the export has no row with a trained token${kept}`] : [];
  const reasons = [
    ...meanings(report.left_out, untrainedReasons),
    ...meanings(report.left_out_rollouts, rolloutReasons),
    ...meanings(report.left_out_groups, groupReasons),
  ];
  return [`alidade: ${inWords(report)}`, ...loud, ...new Set(reasons)];
}

function meanings(counts: Record<string, number>, table: Record<string, Meaning>): string[] {
  return Object.keys(counts).map((reason) => `  ${reason}${meaningOf(table, reason)}`);
}

/** A system error comes from the output: errors of reading already name their file. */
async function writeTo(
  out: string | undefined,
  write: (stream: Writable, options: { signal?: AbortSignal }) => Promise<ExportReport>,
): Promise<ExportReport> {
  // To standard output there is nothing to tidy up: a signal ends it at once.
  const signal = out === undefined ? null : terminal().stopSignal();
  try {
    await using output = await openOutput(out);
    const written = await write(output.stream, signal === null ? {} : { signal });
    if (written.rows > 0) await output.keep();
    return written;
  } catch (error) {
    if (signal?.aborted) throw new AlidadeError("cancelled", `the export to ${out} was stopped`, { cause: error });
    throw (error as NodeJS.ErrnoException).syscall === undefined ? error : toStoreError(out ?? "standard output", error);
  }
}

/** To open one of the files that rows are made of, by whatever name, would empty it. */
async function refuseRecords(folder: string, out: string): Promise<void> {
  const pairs = ["run.json", "rollouts.jsonl", "trajectories.jsonl"].map((name) => [out, join(folder, name)] as const);
  for (const [one, other] of [...pairs, [dirname(out), join(folder, "sessions")] as const]) {
    const [a, b] = await Promise.all([one, other].map((path) => stat(path).catch(() => null)));
    if (a && b && a.dev === b.dev && a.ino === b.ino)
      throw new AlidadeError("config_invalid", `${out} is a record of the run itself: name another file with --out`, { param: "out" });
  }
}

function inWords(report: ExportReport): string {
  const dummies = report.dummy_rows > 0 ? ` (${report.dummy_rows} of them dummies)` : "";
  const leftOut = [
    ...counted(report.left_out, ""),
    ...counted(report.left_out_rollouts, "rollouts "),
    ...counted(report.left_out_groups, "groups "),
  ];
  return `${report.rows} rows${dummies} of ${report.trajectories} trajectories${leftOut.length > 0 ? `; left out: ${leftOut.join(", ")}` : ""}`;
}

function counted(counts: Record<string, number>, what: string): string[] {
  return Object.entries(counts).map(([reason, count]) => `${count} ${what}${reason}`);
}

function wholeNumber(param: string, value: number): number {
  if (Number.isInteger(value) && value > 0) return value;
  throw new AlidadeError("config_invalid", `--${param.replaceAll("_", "-")} is ${value}: give a whole number of 1 or more`, { param });
}

/** Options that were not given stay away, for a format may have no use for them. */
function given<Name extends string, Value>(name: Name, value: Value | undefined): { [name in Name]?: Value } {
  return (value === undefined ? {} : { [name]: value }) as { [name in Name]?: Value };
}

function requestClass(word: string): RequestClass {
  const parsed = RequestClass.safeParse(word);
  if (parsed.success) return parsed.data;
  throw new AlidadeError("config_invalid", `--leave-out knows no "${word}"; there are: ${RequestClass.options.join(", ")}`, {
    param: "leave_out",
  });
}
