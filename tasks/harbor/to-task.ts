/** One task folder of Harbor as a Task. */
import { basename, join } from "node:path";
import type { Service } from "../../base/schema/environment/services.ts";
import type { NetworkAccess } from "../../base/schema/network.ts";
import { type Environment, Limits, Task } from "../../base/schema/task.ts";
import { exists, folderBelow } from "../host-path.ts";
import { parseTask, taskError } from "../task-error.ts";
import type { LoadOptions } from "../task-format.ts";
import { readCompose } from "./compose/read-compose.ts";
import { expandEnv } from "./expand-env.ts";
import type { FolderOrder } from "./folder-order.ts";
import { goldOf } from "./gold-of.ts";
import { putApart } from "./put-apart.ts";
import { configName, readConfig, textOf, withoutCanary } from "./read-config.ts";
import { refuseFields } from "./refused-fields.ts";
import type { TaskConfig } from "./task-config.ts";
import { agentNetwork, imageSource, secondsOf, statedLimits, statesNetwork, stepSeconds, toEnvironment, userOf } from "./to-environment.ts";
import { placedSteps, toSteps } from "./to-steps.ts";
import { toTools } from "./to-tools.ts";
import { testNetwork, toVerifier } from "./to-verifier.ts";

/** For the sandbox, beside what its healthcheck may take. */
const initSeconds = 300;

export type ReadTask = { task_id: string; folder: string; file: string; config: TaskConfig };

export async function readTask(folder: string, { progress = () => {} }: LoadOptions): Promise<ReadTask> {
  const file = join(folder, configName);
  const config = await readConfig(folder, progress);
  const task_id = (config.task?.name ?? basename(folder)).replace("/", "__");
  const parsed = Task.shape.task_id.safeParse(task_id);
  if (!parsed.success) throw taskError(file, "task.name", `gives the id ${task_id}: ${parsed.error.issues[0]?.message}`);
  return { task_id, folder, file, config };
}

export async function toTask({ task_id, folder, file, config }: ReadTask, options: LoadOptions): Promise<Task> {
  const { progress: say = () => {} } = options;
  await refuseFields(config, folder, file);
  const { environment, agent, metadata } = config;
  // Before the image, which may be pulled.
  const read = await readCompose(join(folder, "environment"), options.env ?? {});
  const tools = toTools(environment, file, read?.services);
  const compose = read && tools ? { ...read, services: await putApart({ folder, config, compose: read, tools }, say) } : read;
  const source = await imageSource(environment, { folder: await contextOf(folder, file), file, field: "environment" }, options);
  const order: FolderOrder = { folder, file, config, source, host: options.env ?? {}, unstated: unstatedNetwork(options), options };
  const steps = placedSteps(config);
  const made = toEnvironment({
    config: environment,
    source,
    env: { ...compose?.env, ...expandEnv(environment.env, order.host, file, "environment.env") },
    user: userOf(agent.user, source),
    network: agentNetwork(order),
    grading_network: testNetwork(order, steps[0] ?? null, ["environment", environment]),
    compose,
    tools,
    skills: environment.skills_dir,
  });
  const task = {
    task_id,
    environment: made,
    limits: limitsOf(config, made),
    ...(steps.length > 0 ? await toSteps(order, steps, made) : await oneStep(order)),
    ...(metadata.alidade.reward_range && { reward_range: metadata.alidade.reward_range }),
    ...(metadata.alidade.keep_processes && { keep_processes: true }),
    data_source: config.source,
    labels: labelsOf(config, metadata),
  };
  return parseTask(Task, task, file);
}

async function oneStep(order: FolderOrder) {
  return {
    instruction: withoutCanary(await textOf(join(order.folder, "instruction.md"))),
    grader: await toVerifier(order, null),
    gold_script: await goldOf(order, ["solution"]),
  };
}

/** Harbor's default is the public network; here the operator must allow that. */
function unstatedNetwork({ allowPublic }: LoadOptions): NetworkAccess {
  return allowPublic ? "public" : "none";
}

function limitsOf({ environment, agent, verifier, steps }: TaskConfig, { healthcheck, services = {} }: Environment): Limits {
  const patience = sum([healthcheck, ...Object.values(services).map((one) => one.healthcheck)].map(patienceOf));
  return Limits.parse({
    init_seconds: initSeconds + patience,
    agent_seconds: steps?.length ? sum(steps.map((step) => stepSeconds(step, agent))) : secondsOf(agent),
    grade_seconds: steps?.length ? sum(steps.map((step) => step.verifier.timeout_sec)) : verifier.timeout_sec,
    ...statedLimits(environment),
  });
}

function patienceOf(check: Service["healthcheck"]): number {
  if (check === null || typeof check === "string") return 0;
  return check.start_period_seconds + check.retries * (check.interval_seconds + check.timeout_seconds);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((all, one) => all + one, 0);
}

/** The folder of the build; null: a task that names an image may have none. */
async function contextOf(folder: string, file: string): Promise<string | null> {
  return (await exists(join(folder, "environment"))) ? folderBelow(folder, "environment", file, "environment") : null;
}

/** A label is a word for a filter, and no text. */
const longestLabel = 200;

function labelsOf({ task, ...config }: TaskConfig, { alidade: _, ...metadata }: TaskConfig["metadata"]): Record<string, string> {
  const scalars = Object.entries(metadata).flatMap(([name, value]) =>
    ["string", "number", "boolean"].includes(typeof value) ? [[name, String(value)] as const] : [],
  );
  const own = [
    ["version", task?.version],
    ["keywords", task?.keywords.join(",")],
    ["network", statesNetwork({ task, ...config }) ? undefined : "unstated"],
  ] as const;
  const all = [...scalars, ...own].flatMap(([name, value]) => (value ? [[name, value.slice(0, longestLabel)] as const] : []));
  return Object.fromEntries(all);
}
