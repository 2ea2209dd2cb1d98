/** `alidade check <task>`: does the task grade what it says? Gold patch → reward 1, no change → reward 0, several times. */
import { resolve } from "node:path";
import type { Command } from "commander";
import { AlidadeError } from "../errors.ts";
import { type CheckResult, type CheckRun, checkTask } from "../graders/check.ts";
import { environmentsOf } from "../graders/index.ts";
import { currentOwner } from "../host/owner.ts";
import { fitOneByOne } from "../rollouts/index.ts";
import { checkPublicNetwork } from "../sandboxes/check-spec.ts";
import type { EngineAddress } from "../sandboxes/engines/engine-connection.ts";
import { pickBackend } from "../sandboxes/index.ts";
import { newId } from "../schema/ids.ts";
import { loadTaskSets } from "../tasks/index.ts";
import { chosenTasks } from "../tasks/select-tasks.ts";
import { print, say, table, toNumber } from "./command-line.ts";
import { dockerEngineOption, graderOption, loadPlugIns, sandboxWords, taskFormatOption } from "./flags/plug-in-flags.ts";
import { addTaskChoice, type TaskChoiceFlags, taskChoiceOf } from "./flags/task-choice.ts";
import { grantsOf, taskEnvOption } from "./flags/task-grants.ts";
import { describeVerdict } from "./show/describe-verdict.ts";
import { visibleText } from "./show/visible-text.ts";
import { terminal } from "./terminal.ts";

export function check(program: Command): void {
  addTaskChoice(program.command("check"))
    .description("Grades every task's gold patch and no change at all, each several times, through the path that rollouts are graded by.")
    .argument("<tasks...>", "task files or folders; `file#id` is one task of a file")
    .option("--times <number>", "gradings of each", toNumber, 3)
    .option("--sandbox <name>", sandboxWords, "auto")
    .addOption(dockerEngineOption())
    .option("--unsafe-host", "allow the process sandbox: the task's tests run as you, on this machine")
    .addOption(graderOption())
    .addOption(taskFormatOption())
    .addOption(taskEnvOption())
    .option("--overcommit", "check also where one sandbox may take more memory or disk than the machine has")
    .option("--allow-public-network", "allow tasks whose set-up or tests reach any public host (`public`)")
    .option("--json", "print one JSON object")
    .addHelpText("after", "\nExamples:\n  alidade check examples/tasks/swe-npm.jsonl\n  alidade check my-task/ --times 5 --sandbox docker")
    .action(async (paths: string[], flags: CheckFlags) => {
      const signal = terminal().stopSignal();
      if (!Number.isInteger(flags.times) || flags.times < 1)
        throw new AlidadeError("config_invalid", `--times is ${flags.times}: give a whole number of 1 or more`, { param: "times" });
      const { backend, reason } = await pickBackend(flags.sandbox, signal, { docker_engines: flags.dockerEngine });
      if (backend.capabilities.isolation === "none" && !flags.unsafeHost)
        throw new AlidadeError(
          "unsafe_host_refused",
          `${reason} The process sandbox isolates nothing: the task's tests would run as you. Start Docker, or pass --unsafe-host.`,
          { param: "unsafe_host" },
        );
      say(`  ${reason}`);
      const plugIns = await loadPlugIns({ graders: flags.grader ?? [], task_formats: flags.taskFormat ?? [] });
      const places = paths.map((path) => (path.includes("#") ? path : resolve(path)));
      const leftOut: string[] = [];
      const onLeftOut = ({ message }: AlidadeError): void => void leftOut.push(message);
      const choice = taskChoiceOf(flags);
      const loaded = await loadTaskSets(places, {
        ...plugIns,
        ...grantsOf({ task_env: flags.taskEnv ?? [], allow_public_network: flags.allowPublicNetwork === true }),
        signal,
        progress: (text) => say(`  ${text}`),
        onLeftOut,
      });
      const tasks = chosenTasks(loaded, choice);
      checkPublicNetwork(tasks, flags.allowPublicNetwork === true);
      fitOneByOne(tasks, backend, await backend.room(signal), flags.overcommit === true);
      const wanted = environmentsOf(tasks, plugIns.graders);
      const environments = wanted.map(({ environment }) => environment);
      const owner = { run_id: newId("run"), owner: await currentOwner() };
      const user = { run_id: owner.run_id, tasks: wanted.map(({ task_id }) => task_id) };
      await backend.prepare(environments, { signal, progress: (text) => say(`  ${text}`), user });
      const results: CheckResult[] = [];
      for (const task of tasks)
        results.push(
          await checkTask(task, backend, {
            ...owner,
            graders: plugIns.graders,
            times: flags.times,
            signal,
            progress: (one) => say(`  ${task.task_id}: ${one.attempt} ${one.time} of ${flags.times}: ${shown(one)}`),
          }),
        );
      if (flags.json) print(JSON.stringify({ checks: results, left_out: leftOut }));
      else {
        print(
          table(
            ["task", "gold", "no change", "verdict"],
            results.map((one) => [one.task_id, rewards(one, "gold"), rewards(one, "no-op"), one.passed ? "holds" : "DOES NOT HOLD"]),
          ),
        );
        for (const one of results) for (const text of whyNot(one)) print(visibleText(text));
      }
      for (const message of leftOut) say(`\nTHIS TASK WAS LEFT OUT: ${message}`);
      if (leftOut.length > 0 || results.some((one) => !one.passed)) terminal().exitCode = 1;
    });
}

/** The first grading of each kind that came out otherwise than it must, with its evidence. */
function whyNot({ task_id, runs }: CheckResult): string[] {
  const wrong = runs.filter(({ verdict, expected }) => verdict.reward !== expected);
  const first = [...Map.groupBy(wrong, ({ attempt }) => attempt).values()].flatMap(([one]) => one ?? []);
  return first.map(({ attempt, time, expected, verdict }) => {
    const work = attempt === "gold" ? "the gold solution" : "no change";
    const rows = describeVerdict(verdict).map(([name, value]) => `  ${name.padEnd(12)}  ${value.replaceAll("\n", `\n${" ".repeat(16)}`)}`);
    return [`\n${task_id}: ${work} must earn ${expected} and earned ${verdict.reward ?? "no reward"} (grading ${time})`, ...rows].join(
      "\n",
    );
  });
}

type CheckFlags = TaskChoiceFlags & {
  times: number;
  sandbox: string;
  dockerEngine?: EngineAddress[];
  unsafeHost?: boolean;
  grader?: string[];
  taskFormat?: string[];
  taskEnv?: string[];
  overcommit?: boolean;
  allowPublicNetwork?: boolean;
  json?: boolean;
};

function rewards(result: CheckResult, attempt: CheckRun["attempt"]): string {
  return result.runs
    .filter((one) => one.attempt === attempt)
    .map(shown)
    .join(" ");
}

function shown({ verdict }: CheckRun): string {
  return verdict.reward === null ? verdict.status : String(verdict.reward);
}
