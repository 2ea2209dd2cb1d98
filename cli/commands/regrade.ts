/** `alidade regrade <run>`: grades the works that a run kept again, by its tasks as they are now. Agents are not run again. */
import { type Command, InvalidArgumentError, Option } from "commander";
import { AlidadeError } from "../../base/errors.ts";
import type { OpenSampler } from "../../graders/index.ts";
import { asksModels } from "../../graders/index.ts";
import { withGrading } from "../../graders/shared/index.ts";
import { type Regraded, type Regrading, RunFolder, regrade as regradeRun } from "../../rollouts/index.ts";
import { openIndex } from "../../rollouts/records/index.ts";
import { table } from "../../view/text/index.ts";
import type { Config } from "../config.ts";
import { loadConfig } from "../load-config.ts";
import { print, say } from "./command-line.ts";
import { addEngineFlags, type EngineFlags, enginesOf } from "./flags/engine-flags.ts";
import { addFilters, type FilterFlags } from "./overview/filters.ts";
import { meantRollouts } from "./overview/meant-rollouts.ts";
import { openJudge } from "./proxy/open-judge.ts";
import { openKeptRun } from "./records/kept-run.ts";
import { runFolderOf } from "./records/run-folder-of.ts";
import { terminal } from "./terminal.ts";

type RegradeFlags = FilterFlags & EngineFlags & { concurrency: number; grading?: "fresh"; overcommit?: boolean; json?: boolean };

export function regrade(program: Command): void {
  addFilters(addEngineFlags(program.command("regrade")))
    .description(
      "Grades the works that a run kept (blobs/) again, each in a fresh sandbox, by the run's tasks as they are now. No agent is run again;\nonly a grader that asks a model (`judge`) calls the run's engines, or those of --engine.\nA new verdict is a new revision of its rollout, and the last one counts: for `export`, `stats` and all else. Nothing of the run changes\nbefore all are graded; broken off, the same command goes on. Ends with 1 where a rollout has no reward, or no new verdict.",
    )
    .argument("<run>", "folder of the run")
    .argument("[rollouts...]", "of these only: rollout id, or TASK/SAMPLE (default: all of the run)")
    .addOption(
      new Option("--grading <place>", "fresh: grade also what was graded in the agent's own sandbox, which is not kept").choices(["fresh"]),
    )
    .option("--concurrency <number>", "gradings at once", wholeNumber, 2)
    .option("--overcommit", "grade also where one sandbox may take more memory or disk than the machine has")
    .option("--json", "print one JSON object with the rollouts that were graded again, and those that were not with the reason")
    .addHelpText(
      "after",
      "\nExamples:\n  alidade regrade runs/run1abc\n  alidade regrade runs/run1abc slugify/0 --json\n  alidade regrade runs/run1abc --task 'slug*' --reward none",
    )
    .action(async (folder: string, names: string[], flags: RegradeFlags) => {
      const signal = terminal().stopSignal();
      const path = await runFolderOf(folder);
      const note = (text: string) => say(`  ${text}`);
      const isWanted = await meantRollouts(path, names, flags);
      const run = await openKeptRun(path, { note, overcommit: flags.overcommit === true }, signal);
      const isAsked = [...run.tasks.values()].some(({ grader }) => asksModels(grader, run.graders));
      const config = await judgeConfig(run.config, flags);
      await using judge = isAsked ? await judgeOf(config, { sessions: RunFolder.sessions(path), note, signal }) : null;
      let graded = 0;
      const regrading = await regradeRun(
        {
          ...run.owner,
          path,
          tasks: new Map([...run.tasks].map(([id, task]) => [id, withGrading(task, flags.grading ?? null)])),
          backend: run.backend,
          graders: run.graders,
          openSampler: judge?.openSampler ?? "no task of the run did so when this began",
          atOnce: flags.concurrency,
          isWanted,
          onGraded: (one) => note(`${++graded}: ${nameOf(one)}: ${shown(one.before)} → ${shown(one.after)}`),
          onDamage: ({ message }) => note(`left out: ${message}`),
        },
        signal,
      ).catch((error: unknown) => {
        if (!signal.aborted) throw error;
        say(`  stopped: the run's rewards are as they were; the same command goes on after ${graded} gradings`);
        return null;
      });
      if (regrading === null) {
        terminal().exitCode = 130;
        return;
      }
      await openIndex(path);
      print(flags.json ? JSON.stringify({ run: path, ...withChanges(regrading) }) : tableOf(regrading));
      if (regrading.left.length > 0 || regrading.regraded.some(({ after }) => after === null)) terminal().exitCode = 1;
    });
}

/** The run's engines, or those of the flags in their place. */
async function judgeConfig(config: Config, flags: EngineFlags): Promise<Config> {
  if (flags.engine.length === 0) return config;
  const { engine: _engine, engines: _engines, routes: _routes, policy: _policy, ...rest } = config;
  return loadConfig({ env: {}, defaults: rest, overrides: enginesOf(flags) });
}

/** An engine that is away costs the verdicts that need it, and no other ones. */
async function judgeOf(...how: Parameters<typeof openJudge>): Promise<AsyncDisposable & { openSampler: OpenSampler | string }> {
  try {
    return await openJudge(...how);
  } catch (error) {
    if (!(error instanceof AlidadeError) || error.owner !== "infrastructure") throw error;
    return { openSampler: `${error.message} (--engine names another one)`, [Symbol.asyncDispose]: async () => undefined };
  }
}

function nameOf({ task_id, sample_index }: { task_id: string; sample_index: number }): string {
  return `${task_id}/${sample_index}`;
}

function withChanges({ regraded, left }: Regrading) {
  return { regraded: regraded.map((one) => ({ ...one, changed: isChanged(one) })), not_regraded: left };
}

function isChanged({ before, after }: Regraded): boolean {
  return before !== after;
}

function tableOf({ regraded, left }: Regrading): string {
  const rows = regraded.map((one) => [
    nameOf(one),
    one.before,
    one.after,
    isChanged(one) ? "CHANGED" : "",
    one.revision,
    [one.task_changed ? "the task changed" : "", one.error?.message ?? (one.status === "graded" ? "" : one.status)]
      .filter(Boolean)
      .join("; "),
  ]);
  const parts = [
    ...(rows.length > 0 ? [table(["rollout", "reward", "new reward", "changed", "revision", "note"], rows)] : []),
    ...(left.length > 0
      ? [
          table(
            ["not graded again", "reason"],
            left.map((one) => [nameOf(one), one.reason]),
          ),
        ]
      : []),
    `${regraded.filter(isChanged).length} of ${regraded.length} rewards changed`,
  ];
  return parts.join("\n\n");
}

function shown(reward: number | null): string {
  return reward === null ? "none" : String(reward);
}

function wholeNumber(text: string): number {
  if (!/^[1-9]\d*$/.test(text)) throw new InvalidArgumentError("Give a whole number of 1 or more.");
  return Number(text);
}
