/** `alidade ls`: which runs, rollouts and sessions there are. */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { Argument, type Command } from "commander";
import { meanOf } from "../../base/statistics/intervals.ts";
import { type Entry, toRollouts } from "../../view/index.ts";
import { table } from "../../view/text/index.ts";
import { print } from "./command-line.ts";
import { entriesOf } from "./overview/entries-of.ts";
import { addFilters, type FilterFlags, isMeant } from "./overview/filters.ts";
import { isRun, runFolderOf } from "./records/run-folder-of.ts";

type LsFlags = FilterFlags & { run?: string; out: string; json?: boolean };

export function ls(program: Command): void {
  addFilters(program.command("ls"))
    .description("Lists runs, or what one run holds: a line for each rollout (its last attempt), or for each session.")
    .addArgument(new Argument("[what]", "default: runs, or with --run rollouts").choices(["runs", "rollouts", "sessions"]))
    .option("-r, --run <folder>", "folder of the run (default for rollouts and sessions: the newest below runs/)")
    .option("-o, --out <folder>", "folder of runs", "runs")
    .option("--json", "print one JSON object with a list under the name of what is listed")
    .addHelpText(
      "after",
      "\nExamples:\n  alidade ls\n  alidade ls rollouts --task 'slug*' --reward 0\n  alidade ls sessions --run runs/serve --label split=held-out --json",
    )
    .action(async (what: string | undefined, flags: LsFlags) => {
      if ((what ?? (flags.run === undefined ? "runs" : "rollouts")) === "runs") return listRuns(flags);
      const folder = await runFolderOf(flags.run);
      const entries = await entriesOf(folder);
      const kind = what === "sessions" ? "sessions" : "rollouts";
      const listed = (kind === "sessions" ? entries.filter(({ session_id }) => session_id !== null) : toRollouts(entries)).filter((entry) =>
        isMeant(flags, entry),
      );
      print(flags.json ? JSON.stringify({ run: folder, [kind]: listed }) : tableOf(kind, listed));
    });
}

async function listRuns(flags: LsFlags): Promise<void> {
  const root = flags.run ?? flags.out;
  const names = flags.run === undefined ? (await readdir(root).catch((): string[] => [])).toSorted() : [""];
  const runs = [];
  for (const name of names) {
    const folder = join(root, name);
    if (!(await isRun(folder))) continue;
    const entries = (await entriesOf(folder)).filter((entry) => isMeant(flags, entry));
    if (entries.length > 0) runs.push(summaryOf(folder, entries));
  }
  runs.sort((a, b) => (a.begun ?? 0) - (b.begun ?? 0));
  if (flags.json) return print(JSON.stringify({ runs }));
  const head = ["run", "begun", "harness", "tasks", "rollouts", "over", "mean reward", "sessions"];
  const cells = runs.map((run) => [
    run.run,
    dateOf(run.begun),
    run.harnesses.join(", ") || null,
    run.tasks,
    run.rollouts,
    run.over,
    run.mean_reward === null ? null : Number(run.mean_reward.toFixed(3)),
    run.sessions,
  ]);
  print(runs.length === 0 ? `no run below ${root}/ holds what is asked for` : table(head, cells));
}

function summaryOf(run: string, entries: Entry[]) {
  const rollouts = toRollouts(entries);
  const rewards = rollouts.flatMap(({ reward }) => reward ?? []);
  const begun = entries.flatMap((entry) => entry.begun ?? []);
  return {
    run,
    begun: begun.length === 0 ? null : Math.min(...begun),
    harnesses: [...new Set(rollouts.flatMap(({ harness }) => harness ?? []))],
    tasks: new Set(rollouts.flatMap(({ task_id }) => task_id ?? [])).size,
    rollouts: rollouts.length,
    over: rollouts.filter(({ state }) => state === "done" || state === "recorded").length,
    mean_reward: rewards.length === 0 ? null : meanOf(rewards),
    sessions: entries.filter(({ session_id }) => session_id !== null).length,
  };
}

/** To the minute, in UTC. */
function dateOf(time: number | null): string | null {
  return time === null ? null : new Date(time).toISOString().slice(0, 16).replace("T", " ");
}

function tableOf(kind: "rollouts" | "sessions", entries: Entry[]): string {
  if (entries.length === 0) return `no ${kind.slice(0, -1)} is as asked for`;
  const head = [kind.slice(0, -1), "task", "sample", "state", "reward", "turns", "sampled", "trainable", "seconds", "ended", "labels"];
  return table(
    head,
    entries.map((entry) => [
      (kind === "rollouts" ? entry.rollout_id : null) ?? entry.session_id,
      entry.task_id,
      entry.sample_index,
      `${entry.state}${entry.attempt > 1 ? ` (attempt ${entry.attempt})` : ""}`,
      entry.reward,
      entry.turns,
      entry.sampled_tokens,
      entry.trainable_tokens,
      entry.seconds === null ? null : Number(entry.seconds.toFixed(1)),
      entry.end,
      Object.entries(entry.labels)
        .map(([name, value]) => `${name}=${value}`)
        .join(" "),
    ]),
  );
}
