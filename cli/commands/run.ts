/** `alidade run`: tasks × samples through a harness, graded, as trajectories. */
import { type Command, Option } from "commander";
import { AlidadeError } from "../../base/errors.ts";
import type { Sampling } from "../../base/schema/message.ts";
import type { RolloutRecord } from "../../base/schema/rollout.ts";
import { GradingPlace, type Task } from "../../base/schema/task.ts";
import { version } from "../../base/version.ts";
import { noteLeftOut } from "../../rollouts/accepted/index.ts";
import { branchingRegistry } from "../../rollouts/branching/index.ts";
import { makeSlots, type ProgressEvent, RunFolder, runTasks } from "../../rollouts/index.ts";
import { type Config, sessionOptionsOf } from "../config.ts";
import { loadConfig } from "../load-config.ts";
import { toNumber } from "./command-line.ts";
import { enginesOf } from "./flags/engine-flags.ts";
import { loadPlugIns } from "./flags/plug-in-flags.ts";
import { addRolloutFlags } from "./flags/rollout-flags.ts";
import { addTaskChoice } from "./flags/task-choice.ts";
import { harborRewardOption, imagesOption, keepProcessesOption, repositoriesOption, taskEnvOption } from "./flags/task-grants.ts";
import { teacherOf } from "./flags/teacher-flags.ts";
import { addTrustFlags } from "./flags/trust-flags.ts";
import { openEngines } from "./proxy/open-engine.ts";
import { controlTokenOf, tellControl } from "./proxy/tell-control.ts";
import { chooseBackend } from "./run/choose-backend.ts";
import { describedRun } from "./run/described-run.ts";
import { harnessOf } from "./run/harness-of.ts";
import { liveProgress } from "./run/live-progress.ts";
import { openMachine } from "./run/open-machine.ts";
import { policyNotes } from "./run/policy-notes.ts";
import { endRun } from "./run/report-run.ts";
import { assertOwnConfiguration, newRun, type RunFlags, type Started } from "./run/run-flags.ts";
import { addServiceFlags, assertNoServiceFlags } from "./run/service-flags.ts";
import { startAtService } from "./run/start-at-service.ts";
import { tasksOfRun } from "./run/tasks-of-run.ts";
import { terminal } from "./terminal.ts";
import { openWatching, unwatched, type Watching } from "./watch/open-watching.ts";
import { watchOf } from "./watch/watch-flags.ts";

export function run(program: Command): void {
  const words = { harness: "one's own command stands in the run file", unsafeHost: "", out: "runs" };
  const trust = { below: "leave out, by name, each task that", notAdmitted: "leave out, by name, each task" };
  addServiceFlags(addTrustFlags(addTaskChoice(addRolloutFlags(program.command("run"), words)), trust))
    .description(
      "Runs every task `samples` times through the harness, each in a sandbox that can reach only the proxy, grades the work in a fresh\nsandbox (or in its own: --grading) and writes <out>/<run id>/: sessions/, rollouts.jsonl, trajectories.jsonl. A failed rollout is a record; its siblings go on,\na task that cannot be loaded is named and\nleft out. The exit code is 1 where a rollout has no reward or a task was left out.",
    )
    .argument("[tasks...]", "task files or folders; `file#id` is one task of a file")
    .option("-n, --samples <number>", "rollouts of each task", toNumber)
    .addOption(taskEnvOption())
    .addOption(imagesOption())
    .addOption(repositoriesOption())
    .addOption(harborRewardOption())
    .option("--warm <number>", "sandboxes that are made ahead of their turn", toNumber)
    .option("--images-gb <number>", "gigabytes of images; what is over it is removed, least recently used first", toNumber)
    .option("--keep-free-gb <number>", "free gigabytes below which nothing new is begun", toNumber)
    .addOption(
      new Option("--grading <place>", "where tests run: a fresh sandbox, or the agent's own one, where it can change its grade").choices(
        GradingPlace.options,
      ),
    )
    .addOption(keepProcessesOption())
    .option(
      "--control-port <number>",
      "also listen for a trainer, on loopback: pause, new weights, resume, engines, metrics; 0 takes a free port; url and token are in <run>/control.json",
      toNumber,
    )
    .option(
      "--resume <folder>",
      "go on with an interrupted run: its own configuration, what is not done yet (at a service: what has not come yet)",
    )
    .option("--retry-set-aside", "with --resume: also run again what was set aside because the process ended by it")
    .option("--json", "print one JSON object with the run's folder and its rollouts")
    .addHelpText(
      "after",
      '\nA run file:\n  engine: { url: http://127.0.0.1:8000 }\n  harness: pi            # or { command: [python3, agent.py, "{instruction}"], files: [agent.py] }\n  tasks: [my-tasks/]\n  samples: 8\n\nExamples:\n  alidade run -c run.yaml\n  alidade run examples/tasks/swe-npm.jsonl --engine http://127.0.0.1:8000 --harness codex -n 4\n  alidade run my-tasks/ --service https://rollouts.example -n 8\n  alidade run --resume runs/run1abc\n\nWhat a run over a service sends, and what stays at its nodes: docs/service.md',
    )
    .action(async (tasks: string[], flags: RunFlags) => {
      const atService = await startAtService(tasks, flags);
      if (atService !== null) return (await import("./run/follow-run.ts")).followRun(atService, flags);
      const { drain, cancel } = terminal().stopSignals();
      const started = await start(tasks, flags);
      await using watching = await openWatching(started.config);
      const leftOut: string[] = [];
      const records = await executeRun({
        ...started,
        signal: cancel,
        drain,
        watching,
        retrySetAside: flags.retrySetAside,
        ...(flags.controlPort !== undefined && { control: { ...controlTokenOf(started.config), port: flags.controlPort } }),
        onProgress: flags.json && started.config.log_format === "text" ? () => undefined : liveProgress(),
        leftOut,
      });
      const { path } = started;
      const stopped = drain.aborted ? `stopped: \`alidade run --resume ${path}\` goes on with what is not done` : null;
      await endRun({ path, records, leftOut, stopped }, flags.json === true);
    });
}

/** A new run's configuration and folder, or those of the run to go on with. */
async function start(tasks: string[], flags: RunFlags): Promise<Started> {
  if (flags.resume !== undefined) return resumed(flags.resume, tasks, flags);
  if (flags.retrySetAside)
    throw new AlidadeError("config_invalid", "--retry-set-aside goes with --resume: name the run's folder there", {
      param: "retry_set_aside",
    });
  assertNoServiceFlags(flags);
  return newRun(tasks, flags);
}

/** The options with which the run began. On resume, only the machine and the URLs of engine and teacher may differ. */
async function resumed(
  path: string,
  tasks: string[],
  {
    resume: _resume,
    json: _json,
    controlPort: _controlPort,
    retrySetAside: _retrySetAside,
    engine,
    kind,
    apiKeyEnv,
    teacher,
    overcommit,
    otel,
    logFormat,
    ...others
  }: RunFlags,
): Promise<Started> {
  assertOwnConfiguration(tasks, others);
  const { run_id, config, made_by } = await describedRun(path, "resume");
  if (made_by !== undefined)
    throw new AlidadeError("config_invalid", `${path} was made by \`${made_by}\`: give that command again in its place`, {
      param: "resume",
    });
  return {
    runId: run_id,
    path,
    config: await loadConfig({
      env: {},
      defaults: config,
      overrides: { ...enginesOf({ engine, kind, apiKeyEnv }), ...teacherOf({ teacher }), overcommit, ...watchOf({ otel, logFormat }) },
    }),
  };
}

/** Everything of a run from its configuration to its records; the demo calls it with plays. */
export async function executeRun(options: {
  config: Config;
  path: string;
  runId: string;
  signal: AbortSignal;
  /** When it fires nothing more begins. */
  drain?: AbortSignal;
  /** Where a trainer reaches it meanwhile. `made`: the token where control.json is to say it. */
  control?: { token: string; made: string | null; port: number };
  /** Nothing watches it where left out. */
  watching?: Watching;
  onProgress: (event: ProgressEvent) => void;
  /** Runs again what was set aside after deaths of the process. */
  retrySetAside?: boolean;
  /** Gets a sentence for each task that is left out; the run goes on without it. */
  leftOut?: string[];
  /** Forced sampling by task, instead of the configuration's. */
  samplingOf?: (task: Task, sampleIndex: number) => Sampling | Sampling[];
}): Promise<RolloutRecord[]> {
  const { config, path, runId, onProgress, watching = unwatched } = options;
  // Until rollouts begin there is nothing to end.
  const signal = options.drain ?? options.signal;
  const begun = Date.now();
  const backend = await chooseBackend(config, signal, onProgress);
  const harness = await harnessOf(config);
  const plugIns = await loadPlugIns(config);
  const branching = config.branching && { options: config.branching, policy: await branchingRegistry.load(config.branching.policy) };
  const note = (text: string) => onProgress({ type: "note", text });
  const onLeftOut = noteLeftOut(note, options.leftOut);
  const { tasks, concurrency } = await tasksOfRun(config, plugIns, backend, harness, { note, onLeftOut, signal });
  // A practice engine ends with its signal, and what runs needs it to its end.
  await using opened = await openEngines(config, options.signal);
  await using folder = await RunFolder.open(path);
  await folder.describe({ run_id: runId, alidade_version: version, config });
  const place = {
    run_id: runId,
    path,
    records: RunFolder.records(path),
    folder,
    engines: opened.engines,
    backend,
    slots: makeSlots(concurrency),
  };
  const told = { control: options.control, watching, onProgress, onLeftOut };
  await using machine = await openMachine(config, { ...place, ...told, graders: plugIns.graders }, signal);
  const { proxy, guard, setup } = machine;
  const retried = options.retrySetAside === true ? guard.forgive() : [];
  if (retried.length > 0) note(`run again after they were set aside: ${retried.join(", ")}`);
  await using _told = await tellControl(path, proxy.controlUrl, options.control?.made ?? null, note);
  policyNotes(config, proxy).forEach(note);
  const records = await runTasks(
    setup,
    {
      tasks,
      samples: config.samples,
      retries: config.retries,
      harness,
      session: sessionOptionsOf(config),
      ...(branching && { branching }),
      ...(options.samplingOf && { samplingOf: options.samplingOf }),
    },
    options.signal,
    options.drain,
  );
  // Reports weights that changed during the run, because its rollouts carry the name of the first ones.
  await proxy.pool.watch.recheck(options.signal);
  watching.watcher?.set({ set_id: runId, key: null, harness: harness.name, purpose: config.purpose, begun, ended: Date.now() });
  return records;
}
