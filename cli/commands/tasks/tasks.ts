/** `alidade tasks list | show | validate | export`: what a set of tasks holds, before any of it is run. */
import { resolve } from "node:path";
import type { Command } from "commander";
import { stringify } from "yaml";
import { AlidadeError } from "../../../base/errors.ts";
import type { Grader } from "../../../graders/index.ts";
import { type HashedTask, loadTasks, selectTasks, type TaskSet, taskSetOf } from "../../../tasks/index.ts";
import { factsOf, promptFormats } from "../../../tasks/prompts/index.ts";
import { table, visibleText } from "../../../view/text/index.ts";
import { print, say } from "../command-line.ts";
import { graderOption, loadPlugIns, taskFormatOption } from "../flags/plug-in-flags.ts";
import { addTaskChoice, type TaskChoiceFlags, taskChoiceOf } from "../flags/task-choice.ts";
import { earlierRuns } from "../overview/earlier-runs.ts";
import { openOutput } from "../records/export-output.ts";
import { terminal } from "../terminal.ts";
import { fromGit } from "./from-git.ts";
import { fromVersions } from "./from-versions.ts";
import { networkWants, wantsInWords } from "./network-wants.ts";

type TasksFlags = TaskChoiceFlags & {
  for?: string;
  out?: string;
  grader?: string[];
  taskFormat?: string[];
  pull?: boolean;
  json?: boolean;
};

const trainers = promptFormats.map(({ name }) => name).join(", ");

export function tasks(program: Command): void {
  const command = program.command("tasks").enablePositionalOptions();
  fromGit(command);
  fromVersions(command);
  addTaskChoice(command)
    .description(
      "list names the tasks of files and folders, show prints one as it is run, validate says what is wrong with each that cannot be loaded, by its files alone, and export\nwrites a row a task for the data loader of a trainer. The exit code is 1 where a task cannot be loaded.",
    )
    .argument("<action>", "list, show, validate or export")
    .argument("<paths...>", "task files or folders; `file#id` is one task of a file")
    .option("--for <trainer>", `of export: ${trainers}`)
    .option("-o, --out <file>", "of export: default is stdout")
    .addOption(graderOption())
    .addOption(taskFormatOption())
    .option("--pull", "of validate: also fetch sources, and pull the images whose own words a task needs, as a run does")
    .option("--json", "print one JSON object")
    .addHelpText(
      "after",
      "\nExamples:\n  alidade tasks list verified.parquet --label 'repo=django/*' --shuffle 7 --shard 1/8\n  alidade tasks list my-tasks/ --pass-rate 0.1..0.9 --of runs/run1abc\n  alidade tasks show my-tasks/#fix-slug\n  alidade tasks validate my-tasks/\n  alidade tasks export verified.parquet --for verl -o prompts.jsonl",
    )
    .action(async (action: string, paths: string[], flags: TasksFlags) => {
      const act = actions.get(action);
      if (act === undefined)
        throw new AlidadeError("config_invalid", `"${action}" is no action: alidade tasks ${[...actions.keys()].join(" | ")}`, {
          param: "action",
        });
      const loaded = await loadSets(paths, flags, action === "validate" && !flags.pull);
      await act(loaded, flags);
      for (const message of loaded.leftOut) say(`\nTHIS TASK WAS LEFT OUT: ${message}`);
      if (loaded.leftOut.length > 0) terminal().exitCode = 1;
    });
}

type Loaded = { sets: TaskSet[]; graders: readonly Grader[]; leftOut: string[] };
const actions = new Map<string, (loaded: Loaded, flags: TasksFlags) => Promise<void> | void>([
  ["list", list],
  ["show", show],
  ["validate", validate],
  ["export", exportPrompts],
]);

/** The set's id and hash are those of all its tasks; the tasks are those that are chosen. `isStatic`: no task is as it is run. */
async function loadSets(paths: string[], flags: TasksFlags, isStatic: boolean): Promise<Loaded> {
  const signal = terminal().stopSignal();
  const plugIns = await loadPlugIns({ graders: flags.grader ?? [], task_formats: flags.taskFormat ?? [] });
  const leftOut: string[] = [];
  const options = {
    ...plugIns,
    static: isStatic,
    signal,
    progress: (text: string) => say(`  ${text}`),
    onLeftOut: ({ message }: AlidadeError) => void leftOut.push(message),
  };
  const choice = taskChoiceOf(flags);
  const earlier = await earlierRuns(choice, options.progress);
  const sets: TaskSet[] = [];
  for (const path of paths) {
    const all = await loadTasks(path.includes("#") ? path : resolve(path), options);
    const set = await taskSetOf(resolve(path), all, plugIns.graders, options);
    sets.push({ ...set, tasks: selectTasks(set.tasks, ({ task }) => task, choice, earlier) });
  }
  return { sets, graders: plugIns.graders, leftOut };
}

function list({ sets, leftOut }: Loaded, flags: TasksFlags): void {
  if (flags.json) print(JSON.stringify({ task_sets: sets.map(described), left_out: leftOut }));
  for (const set of flags.json ? [] : sets) {
    print(`${set.id}  version ${set.version ?? "–"}  hash ${set.hash}  ${set.tasks.length} tasks`);
    const rows = set.tasks.map(({ task, hash }) => [task.task_id, task.data_source, task.environment.image ?? "–", task.grader.kind, hash]);
    print(table(["task", "source", "image", "grader", "hash"], rows));
  }
}

function described({ id, version, hash, tasks }: TaskSet) {
  const each = ({ task: { task_id, data_source, labels, environment, grader }, hash: task_hash }: HashedTask) => ({
    task_id,
    task_hash,
    data_source,
    image: environment.image,
    grader: grader.kind,
    labels,
  });
  return { id, version, hash, tasks: tasks.map(each) };
}

function show({ sets }: Loaded, flags: TasksFlags): void {
  const found = sets.flatMap((set) => set.tasks);
  if (flags.json) print(JSON.stringify({ tasks: found.map(({ task, hash }) => ({ ...task, task_hash: hash })) }));
  else for (const { task, hash } of found) print(`# ${hash}\n${stringify(task)}`);
}

async function validate({ sets, graders, leftOut }: Loaded, flags: TasksFlags): Promise<void> {
  const found = sets.flatMap((set) => set.tasks);
  const wants = (await Promise.all(found.map(({ task }) => networkWants(task, graders)))).flat();
  if (flags.json) print(JSON.stringify({ valid: found.length, left_out: leftOut, network_wants: wants }));
  else {
    print(`${found.length} tasks can be loaded, ${leftOut.length} cannot. What they grade is for \`alidade check\`.`);
    for (const line of wantsInWords(wants)) print(visibleText(line));
  }
}

async function exportPrompts({ sets }: Loaded, flags: TasksFlags): Promise<void> {
  const format = promptFormats.find(({ name }) => name === flags.for);
  if (format === undefined)
    throw new AlidadeError(
      "config_invalid",
      `--for is ${flags.for === undefined ? "missing" : JSON.stringify(flags.for)}: give one of ${trainers}`,
      {
        param: "for",
      },
    );
  await using output = await openOutput(flags.out);
  let index = 0;
  for (const set of sets)
    for (const hashed of set.tasks)
      output.stream.write(`${JSON.stringify(format.row(factsOf(set, hashed), hashed.task.instruction, index++))}\n`);
  if (flags.out !== undefined) await new Promise<void>((done, failed) => output.stream.once("error", failed).end(done));
  await output.keep();
  say(`${index} rows for ${format.title}`);
}
