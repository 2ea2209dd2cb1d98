/** `alidade check <tasks>`: may one train on them? What is found becomes an admission record, which `run --admitted-only` asks for. */
import { join, resolve } from "node:path";
import type { Command } from "commander";
import { AlidadeError } from "../../base/errors.ts";
import { currentOwner } from "../../base/host/owner.ts";
import type { EngineAddress } from "../../base/schema/container-engine.ts";
import { newId } from "../../base/schema/ids.ts";
import type { NetworkAccess } from "../../base/schema/network.ts";
import { isIsolated } from "../../base/schema/rollout.ts";
import type { Task } from "../../base/schema/task.ts";
import { version } from "../../base/version.ts";
import { checksVersion } from "../../graders/admission/index.ts";
import type { Grader } from "../../graders/index.ts";
import { asksModels } from "../../graders/index.ts";
import type { NamedGraderServer } from "../../graders/remote/index.ts";
import { checkGrading, checkKept, keepsProcesses, withGrading } from "../../graders/shared/index.ts";
import { acceptedTasks, checkPublicNetwork, LeftOutTasks, publicGrantOf } from "../../rollouts/accepted/index.ts";
import { admitTasks, fitMachine, knownChecks, prepareTasks, RunFolder, type TaskCheck, tasksThatFit } from "../../rollouts/index.ts";
import type { SandboxBackend } from "../../sandboxes/index.ts";
import { pickBackend } from "../../sandboxes/index.ts";
import type { HashedTask } from "../../tasks/index.ts";
import { chosenTasks, hashedTasks, loadTaskSets } from "../../tasks/index.ts";
import { visibleText } from "../../view/text/index.ts";
import { checkReport, notesOn, whyNot } from "./check-report.ts";
import { print, say, toNumber } from "./command-line.ts";
import { commandConfig } from "./flags/command-config.ts";
import { addEngineFlags, type EngineFlags, enginesOf } from "./flags/engine-flags.ts";
import {
  dockerEngineOption,
  graderOption,
  graderServerOption,
  loadPlugIns,
  sandboxWords,
  taskFormatOption,
} from "./flags/plug-in-flags.ts";
import { addTaskChoice, type TaskChoiceFlags, taskChoiceOf } from "./flags/task-choice.ts";
import {
  grantsOf,
  harborRewardOption,
  type ImageSourceFlags,
  imagesOption,
  keepProcessesOption,
  repositoriesOption,
  taskEnvOption,
  verifierNetworkOption,
} from "./flags/task-grants.ts";
import { earlierRuns } from "./overview/earlier-runs.ts";
import { type OpenedJudge, openJudge } from "./proxy/open-judge.ts";
import { terminal } from "./terminal.ts";

export function check(program: Command): void {
  addTaskChoice(addEngineFlags(program.command("check")))
    .description(
      "Proves tasks before anything is trained on them: the known solution must earn all, no change and a random edit less, each time; no hack of\nthe list may pay, and nothing that an agent can read may hold the answer. What is found is kept by the task's content: `run --admitted-only`\nleaves out what was not admitted, and a task that was checked is not checked again without --again. Hacks are tried in containers only. Tasks whose grader asks a model (`judge`) need --engine. The exit code is 1\nwhere a task was not admitted, could not be checked or was left out.",
    )
    .argument("<tasks...>", "task files or folders; `file#id` is one task of a file")
    .option("--times <number>", "gradings of the known solution and of no change, each", toNumber, 3)
    .option("--concurrency <number>", "tasks checked at once; default: 2, or 1 where the machine holds fewer sandboxes", toNumber)
    .option("--sandbox <name>", sandboxWords, "auto")
    .addOption(dockerEngineOption())
    .option("--unsafe-host", "allow the process sandbox: the task's tests run as you, on this machine; no hack is tried there")
    .addOption(graderOption())
    .addOption(graderServerOption())
    .addOption(taskFormatOption())
    .addOption(taskEnvOption())
    .addOption(imagesOption())
    .addOption(repositoriesOption())
    .addOption(harborRewardOption())
    .option("--overcommit", "check also where one sandbox may take more memory or disk than the machine has")
    .option("--allow-public-network", "allow tasks whose set-up or tests reach any public host (`public`)")
    .addOption(verifierNetworkOption())
    .addOption(keepProcessesOption())
    .option("--again", "check also what was checked before, for instance after an image was built anew under its old name")
    .option("--json", "print one JSON object")
    .addHelpText(
      "after",
      "\nExamples:\n  alidade check examples/tasks/swe-npm.jsonl\n  alidade check my-task/ --times 5 --sandbox docker\n  alidade check verified.parquet --concurrency 4 && alidade run verified.parquet --admitted-only --engine http://127.0.0.1:8000",
    )
    .action(async (paths: string[], flags: CheckFlags) => {
      const leftOut: string[] = [];
      const checks = await checkAll(paths, flags, ({ message }) => void leftOut.push(message));
      if (flags.json) print(JSON.stringify({ checks: checks.map(({ verdicts: _, ...one }) => one), left_out: leftOut }));
      else {
        print(checkReport(checks));
        for (const text of [...checks.flatMap(whyNot), ...checks.flatMap(notesOn)]) print(visibleText(text));
      }
      for (const message of leftOut) say(`\nTHIS TASK WAS LEFT OUT: ${message}`);
      if (leftOut.length > 0 || checks.some(({ outcome }) => outcome !== "admitted" && outcome !== "holds")) terminal().exitCode = 1;
    });
}

type CheckFlags = TaskChoiceFlags &
  EngineFlags & {
    times: number;
    concurrency?: number;
    sandbox: string;
    dockerEngine?: EngineAddress[];
    unsafeHost?: boolean;
    grader?: string[];
    graderServer?: NamedGraderServer[];
    taskFormat?: string[];
    taskEnv?: string[];
    overcommit?: boolean;
    allowPublicNetwork?: boolean;
    verifierNetwork?: NetworkAccess;
    keepProcesses?: boolean;
    again?: boolean;
    json?: boolean;
  } & ImageSourceFlags;

type Checking = {
  flags: CheckFlags;
  backend: SandboxBackend;
  graders: readonly Grader[];
  onLeftOut: (error: AlidadeError) => void;
  signal: AbortSignal;
};

const progress = (text: string): void => say(`  ${text}`);

async function checkAll(paths: string[], flags: CheckFlags, tell: Checking["onLeftOut"]): Promise<TaskCheck[]> {
  const leftOut = new LeftOutTasks(tell);
  const onLeftOut = leftOut.add;
  const signal = terminal().stopSignal();
  assertWhole("--times", flags.times);
  if (flags.concurrency !== undefined) assertWhole("--concurrency", flags.concurrency);
  const backend = await backendOf(flags, signal);
  const plugIns = await loadPlugIns({
    graders: flags.grader ?? [],
    task_formats: flags.taskFormat ?? [],
    grader_servers: flags.graderServer ?? [],
  });
  const places = paths.map((path) => (path.includes("#") ? path : resolve(path)));
  const networks = { allow_public_network: flags.allowPublicNetwork === true, verifier_network: flags.verifierNetwork ?? null };
  const grants = grantsOf({
    ...flags,
    ...networks,
    task_env: flags.taskEnv ?? [],
    harbor_reward: flags.harborReward ?? null,
  });
  const choice = taskChoiceOf(flags);
  const earlier = await earlierRuns(choice, progress);
  const loaded = await loadTaskSets(places, { ...plugIns, ...grants, signal, progress, onLeftOut });
  const allow = (task: Task): void => {
    checkPublicNetwork(task, publicGrantOf(networks), plugIns.graders);
    if (keepsProcesses(task)) checkGrading(task, plugIns.graders);
    checkKept(task, backend);
  };
  const chosen = chosenTasks(loaded, choice, earlier).map((task) => withGrading(task, null, flags.keepProcesses));
  const tasks = await acceptedTasks(chosen, allow, onLeftOut, true);
  const hashed = await hashedTasks(tasks, plugIns.graders, { onLeftOut });
  // What is found without isolation admits nothing.
  const isIsolating = isIsolated(backend.capabilities.isolation);
  const known =
    isIsolating && flags.again !== true ? await knownChecks(hashed, checksVersion(version), flags.times) : hashed.map(() => null);
  const found = known.filter((one) => one !== null);
  if (found.length > 0)
    progress(`${found.length} of ${hashed.length} tasks were checked before: their records count (--again checks them again)`);
  const open = hashed.filter((_, index) => known[index] === null);
  const checks = [...found, ...(await checkOpen(open, { flags, backend, graders: plugIns.graders, onLeftOut, signal }))];
  leftOut.assertSome(checks);
  return inOrder(hashed, checks);
}

/** [] where none of them can be checked: others may have been checked before. */
async function checkOpen(open: HashedTask[], checking: Checking): Promise<TaskCheck[]> {
  if (open.length === 0) return [];
  const { flags, backend, graders, onLeftOut, signal } = checking;
  const run_id = newId("run");
  const tasks = open.map(({ task }) => task);
  const room = await backend.room(signal);
  const overcommit = flags.overcommit === true;
  await using judge = await judgeFor(tasks, run_id, checking);
  const wanted = { init: 1, run: 1, ...(flags.concurrency !== undefined && { post: flags.concurrency }) };
  const leaving = { onLeftOut, mayBeNone: true };
  const askable = await acceptedTasks(tasks, withoutJudge(judge, graders), onLeftOut, true);
  const fitting = await tasksThatFit(askable, { samples: 1, concurrency: wanted }, { backend, room, overcommit, ...leaving });
  const ready = new Set(await prepareTasks(fitting, backend, { signal, progress, run_id, graders, ...leaving }));
  const { concurrency } = fitMachine([...ready], 1, wanted, backend, room, overcommit);
  return await admitTasks(
    open.filter(({ task }) => ready.has(task)),
    backend,
    {
      run_id,
      owner: await currentOwner(),
      graders,
      ...(judge && { openSampler: judge.openSampler }),
      times: flags.times,
      version: checksVersion(version),
      atOnce: concurrency.post,
      signal,
      onGraded: (task_id, { work, time, reward, status }) => progress(`${task_id}: ${work} ${time}: ${reward ?? status}`),
    },
  );
}

/** null: no task asks a model, or no engine was named. What the models are asked is recorded in `runs/<id>/sessions`. */
async function judgeFor(tasks: readonly Task[], run_id: string, { flags, graders, signal }: Checking): Promise<OpenedJudge | null> {
  if (flags.engine.length === 0 || !tasks.some(({ grader }) => asksModels(grader, graders))) return null;
  const config = await commandConfig(undefined, { overrides: enginesOf(flags) });
  return openJudge(config, { sessions: RunFolder.sessions(join(config.out, run_id)), note: progress, signal });
}

function withoutJudge(judge: OpenedJudge | null, graders: readonly Grader[]) {
  return ({ grader }: Task): void => {
    if (judge !== null || !asksModels(grader, graders)) return;
    throw new AlidadeError("config_invalid", `its grader ${grader.kind} asks a model: name one by --engine`, { param: "engine" });
  };
}

function inOrder(hashed: readonly HashedTask[], checks: readonly TaskCheck[]): TaskCheck[] {
  const byTask = new Map(checks.map((one) => [`${one.task_id} ${one.task_hash}`, one]));
  return hashed.flatMap(({ task, hash }) => byTask.get(`${task.task_id} ${hash}`) ?? []);
}

async function backendOf(flags: CheckFlags, signal: AbortSignal): Promise<SandboxBackend> {
  const { backend, reason } = await pickBackend(flags.sandbox, signal, { docker_engines: flags.dockerEngine });
  if (!isIsolated(backend.capabilities.isolation) && !flags.unsafeHost)
    throw new AlidadeError(
      "unsafe_host_refused",
      `${reason} Such a sandbox isolates nothing: the task's tests would run as you. Start Docker, or pass --unsafe-host.`,
      { param: "unsafe_host" },
    );
  say(`  ${reason}`);
  if (!isIsolated(backend.capabilities.isolation))
    say("  NO HACK IS TRIED HERE, and no task is admitted: hack probes and the scan for leaks want isolation (--sandbox docker)");
  return backend;
}

function assertWhole(flag: string, value: number): void {
  if (Number.isInteger(value) && value >= 1) return;
  throw new AlidadeError("config_invalid", `${flag} is ${value}: give a whole number of 1 or more`, { param: flag.slice(2) });
}
