/** `alidade stats`: mean reward and pass@k of a run, by task and policy step. */
import { type Command, InvalidArgumentError } from "commander";
import { type Statistics, statisticsOf } from "../../../base/statistics/statistics.ts";
import { describedResumes, lastByTask, type ResumeTally, resumeTally } from "../../../rollouts/records/index.ts";
import { toRollouts } from "../../../view/index.ts";
import { table } from "../../../view/text/index.ts";
import { print, say, toNumber } from "../command-line.ts";
import { entriesOf } from "../overview/entries-of.ts";
import { between, short } from "../overview/evaluation-text.ts";
import { addFilters, type FilterFlags, isMeant } from "../overview/filters.ts";
import { keyBy } from "../overview/key-by.ts";
import { runFolderOf } from "./run-folder-of.ts";

type StatsFlags = FilterFlags & {
  run?: string[];
  by?: string[];
  k?: number[];
  pass: number;
  csv?: boolean;
  json?: boolean;
  figures?: boolean;
};
type StatsRow = { by: string; key: string | null } & Statistics;

export function stats(program: Command): void {
  addFilters(program.command("stats"))
    .description(
      "Mean reward and pass@k (the unbiased estimator) with 95 % intervals, of all rollouts and by what they have in common. The last attempt of a\nrollout counts; one without a reward is counted as a rollout and is in no other number. Each task weighs the same. An interval is over\nother tasks of the kind where there are two or more, else over other rollouts of the one.",
    )
    .option("-r, --run <folder>", "folder of the run (default: the newest below runs/); several times for several", collect)
    .option("--by <what>", "task, policy, harness or label:NAME; several times for several (default: task and policy)", grouping)
    .option("-k <number>", "k of pass@k; several times for several (default: 1, 2, 4 … as far as every task has rollouts)", wholeNumber)
    .option("--pass <reward>", "a rollout passes with this reward or more", toNumber, 1)
    .option("--figures", "the figures by policy step that `alidade status --figures` has of a service (docs/figures.md), with --json too")
    .option("--csv", "print one line a row, with commas")
    .option("--json", "print one JSON object; a row has also `passed`, `pass_rate` and `pass_interval`")
    .addHelpText("after", "\nExamples:\n  alidade stats\n  alidade stats --run runs/run1abc --by policy -k 1 -k 8 --csv")
    .action(async (flags: StatsFlags) => {
      const { pass, k: ks = null, by = ["task", "policy"] } = flags;
      const folders = await Promise.all((flags.run ?? [undefined]).map((folder) => runFolderOf(folder)));
      if (flags.figures) return print(await figuresText(folders, flags));
      const entries = (await Promise.all(folders.map(entriesOf))).flatMap(toRollouts);
      const rollouts = entries.filter((entry) => isMeant(flags, entry));
      const groups = by.flatMap((what) => [...Map.groupBy(rollouts, keyBy(what))].map(([key, all]) => ({ by: what, key, all })));
      const rows: StatsRow[] = [{ by: "all", key: null, all: rollouts }, ...groups].map(({ all, ...row }) => ({
        ...row,
        ...statisticsOf(all, { pass, ks }),
      }));
      const resumes = await resumesOf(folders);
      if (flags.json) print(JSON.stringify({ runs: folders, pass, statistics: rows, resumes }));
      else print(flags.csv ? asCsv(rows) : asTable(rows));
      const told = describedResumes(resumes);
      if (told !== null && !flags.json) say(`\n${told}`);
    });
}

/** Counts all rollouts of the runs, whatever is chosen of them. */
async function resumesOf(folders: readonly string[]): Promise<ResumeTally> {
  const last = await Promise.all(folders.map(async (folder) => [...(await lastByTask(folder)).values()].flat()));
  return resumeTally(last.flat());
}

/** It reads the tokens of the run, and what that takes is loaded here alone. */
async function figuresText(folders: string[], flags: StatsFlags): Promise<string> {
  const { runFigures } = await import("../overview/run-figures.ts");
  const { figuresTable } = await import("../overview/figures-table.ts");
  const steps = (await runFigures(folders, (rollout) => isMeant(flags, rollout))).latest(Number.POSITIVE_INFINITY);
  return flags.json ? JSON.stringify({ runs: folders, steps }) : figuresTable(steps);
}

function asTable(rows: StatsRow[]): string {
  const ks = ksOf(rows);
  return table(
    ["by", "", "tasks", "rollouts", "measured", "mean reward", "95 %", ...ks.flatMap((k) => [`pass@${k}`, "95 %"])],
    rows.map((row) => [
      row.by,
      row.key ?? "",
      row.tasks,
      row.rollouts,
      row.measured,
      short(row.mean_reward),
      between(row.mean_interval),
      ...ks.flatMap((k) => {
        const found = row.pass_at_k.find((one) => one.k === k);
        return [short(found?.value ?? null), between(found?.interval)];
      }),
    ]),
  );
}

function ksOf(rows: StatsRow[]): number[] {
  return [...new Set(rows.flatMap(({ pass_at_k }) => pass_at_k.map(({ k }) => k)))].toSorted((a, b) => a - b);
}

/** As RFC 4180 has it; what is unknown is empty. */
function asCsv(rows: StatsRow[]): string {
  const ks = ksOf(rows);
  const numbers = ks.flatMap((k) => [`pass@${k}`, `pass@${k}_low`, `pass@${k}_high`]);
  const head = ["by", "key", "tasks", "rollouts", "measured", "mean_reward", "mean_reward_low", "mean_reward_high", ...numbers];
  const lines = rows.map((row) => {
    const { by, key, tasks, rollouts, measured, mean_reward, mean_interval } = row;
    const passes = ks.flatMap((k) => {
      const found = row.pass_at_k.find((one) => one.k === k);
      return [found?.value, found?.interval.low, found?.interval.high];
    });
    return [by, key, tasks, rollouts, measured, mean_reward, mean_interval?.low, mean_interval?.high, ...passes];
  });
  return [head, ...lines].map((cells) => cells.map(csvCell).join(",")).join("\n");
}

function csvCell(value: string | number | null | undefined): string {
  const text = String(value ?? "");
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function collect(text: string, all: string[] = []): string[] {
  return [...all, text];
}

function grouping(text: string, all: string[] = []): string[] {
  if (!/^(task|policy|harness|label:.+)$/s.test(text)) throw new InvalidArgumentError("Give task, policy, harness or label:NAME.");
  return [...all, text];
}

function wholeNumber(text: string, all: number[] = []): number[] {
  if (!/^[1-9]\d{0,5}$/.test(text)) throw new InvalidArgumentError("Give a whole number of 1 or more.");
  return [...all, Number(text)];
}
