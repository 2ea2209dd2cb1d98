/** Makes a Task of one folder of Terminal-Bench. */
import { basename, join } from "node:path";
import { overlay, readFolder } from "../../base/files/file-tree.ts";
import { type Environment, Limits, Task } from "../../base/schema/task.ts";
import type { HarborSpec } from "../../graders/index.ts";
import { composeName } from "../harbor/compose/read-compose.ts";
import { healthcheckOf, limitsOf } from "../harbor/compose/to-services.ts";
import { textOf } from "../harbor/read-config.ts";
import { userOf, wholeLayer } from "../harbor/to-environment.ts";
import { exists, folderBelow } from "../host-path.ts";
import { readYaml } from "../readers/read-yaml.ts";
import { parseTask, taskError } from "../task-error.ts";
import type { LoadOptions } from "../task-format.ts";
import { BenchConfig, unknownFields } from "./bench-config.ts";
import { type ClientSource, clientSource } from "./client-source.ts";
import { isFile, keptFiles, knownSolution } from "./known-solution.ts";
import { type ClientConfig, readClient } from "./read-client.ts";
import { configName, scriptName } from "./task-folders.ts";

export type ReadBenchTask = { task_id: string; folder: string; file: string; config: BenchConfig; unknown: string[] };

export async function readTask(folder: string): Promise<ReadBenchTask> {
  const file = join(folder, configName);
  const value = await readYaml(file, { followsLinks: false });
  const config = parseTask(BenchConfig, value, file);
  const parsed = Task.shape.task_id.safeParse(basename(folder));
  if (!parsed.success) throw taskError(folder, "the folder", `gives the task_id ${basename(folder)}: ${parsed.error.issues[0]?.message}`);
  return { task_id: parsed.data, folder, file, config, unknown: unknownFields(value) };
}

export async function toTask({ task_id, folder, file, config }: ReadBenchTask, options: LoadOptions): Promise<Task> {
  const compose = join(folder, composeName);
  if (!(await isFile(compose))) throw taskError(compose, "the file", "is no file (links are not followed): the task's image stands there");
  const { own: client, services } = await readClient(compose, options.env ?? {});
  const { gold_script, isTyped } = await knownSolution(folder);
  if (config.run_tests_in_same_shell && (isTyped || gold_script === undefined))
    throw taskError(
      file,
      "run_tests_in_same_shell",
      "is true, and no solution.sh shows that the tests pass in another shell: the shell of an agent ends with it, so write false",
    );
  const source = await clientSource(client, { folder, file: compose }, options);
  const task = {
    task_id,
    instruction: instructionOf(config, file),
    environment: { ...environmentOf(client, source, options), ...(Object.keys(services).length > 0 && { services }) },
    limits: Limits.parse({
      agent_seconds: config.max_agent_timeout_sec,
      grade_seconds: config.max_test_timeout_sec,
      ...limitsOf(client),
    }),
    grader: graderOf(config, await testsOf(folder), source),
    gold_script,
    labels: labelsOf(config),
  };
  return parseTask(Task, task, file);
}

function instructionOf({ instruction, descriptions = [] }: BenchConfig, file: string): string {
  const text = instruction ?? descriptions.find(({ key }) => key === "base")?.description;
  if (text !== undefined) return text;
  throw taskError(file, "instruction", "is missing, and no entry of descriptions has the key base: write it");
}

/** Root makes these folders before the agent starts. All users may write to them, as to Terminal-Bench's mounts. */
const madeFolders = 'mkdir -p "$@" && chmod 777 "$@"';

function environmentOf(client: ClientConfig, { image, build, stage }: ClientSource, options: LoadOptions): Partial<Environment> {
  const folders = new Set(["/logs", "/agent-logs", ...client.volumes]);
  return {
    image,
    build,
    workdir: stage.workdir ?? "/",
    env: client.environment,
    user: userOf(stage.user),
    writable: "root",
    work: wholeLayer,
    healthcheck: healthcheckOf(client.healthcheck),
    // In Terminal-Bench everything has a network. Here the operator must allow it, to the agent and to the tests.
    network: options.allowPublic ? "public" : "none",
    grading_network: options.verifierNetwork ?? "none",
    setup: { command: ["sh", "-c", madeFolders, "sh", ...folders], network: "none", user: "root" },
  };
}

/** Terminal-Bench copies the script and `tests/` to one folder. If both have a file of one name, that of `tests/` wins. */
async function testsOf(folder: string): Promise<string> {
  const script = join(folder, scriptName);
  if (!(await isFile(script))) throw taskError(script, "the file", "is no file (links are not followed): it runs the tests");
  const files = [{ path: scriptName, content: Buffer.from(await textOf(script)), mode: 0o755 }];
  if (!(await exists(join(folder, "tests")))) return keptFiles(files);
  return keptFiles(overlay(files, await readFolder(await folderBelow(folder, "tests", join(folder, configName), "tests"))));
}

function graderOf(config: BenchConfig, tests: string, { stage }: ClientSource): Pick<HarborSpec, "kind" | "tests" | "user" | "printed"> {
  // Tests in a shell of their own run as root. Those for the agent's shell run as the agent's user.
  const user = config.run_tests_in_same_shell ? userOf(stage.user) : "root";
  return { kind: "harbor", tests, user, printed: config.parser_name };
}

/** A label is a word to filter by, not a text. */
const longestLabel = 200;

function labelsOf({ difficulty, category, tags }: BenchConfig): Record<string, string> {
  const all = Object.entries({ difficulty, category, tags: tags?.join(","), network: "unstated" });
  return Object.fromEntries(all.flatMap(([name, value]) => (value ? [[name, value.slice(0, longestLabel)]] : [])));
}
