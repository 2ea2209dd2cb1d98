/** One task folder of Harbor as a Task. */
import { lstat } from "node:fs/promises";
import { basename, join, posix } from "node:path";
import { AlidadeError } from "../../errors.ts";
import type { HarborSpec } from "../../graders/harbor.ts";
import { readContext } from "../../sandboxes/images/build-context.ts";
import type { NetworkAccess } from "../../schema/network.ts";
import { Limits, Task } from "../../schema/task.ts";
import { exists, folderBelow } from "../host-path.ts";
import { parseTask, taskError } from "../task-error.ts";
import type { LoadOptions } from "../task-format.ts";
import { expandEnv } from "./expand-env.ts";
import { configName, readConfig, textOf } from "./read-config.ts";
import { refuseFields } from "./refused-fields.ts";
import type { EnvironmentConfig, TaskConfig } from "./task-config.ts";
import { type ImageSource, imageSource, networkOf, statedLimits, statesNetwork, toEnvironment, userOf } from "./to-environment.ts";

/** Harbor waits without an end; an agent that hangs would keep its place for ever. */
const agentSeconds = 3_600;
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
  await refuseFields(config, folder, file);
  const { environment, agent, verifier, metadata } = config;
  const source = await imageSource(environment, { folder: await contextOf(folder, file, config), file, field: "environment" }, options);
  const host = options.env ?? {};
  const unstated = unstatedNetwork(options);
  const baseline = [["environment", environment]] as const;
  const user = userOf(agent.user, source);
  const made = toEnvironment({
    config: environment,
    source,
    env: expandEnv(environment.env, host, file, "environment.env"),
    user,
    network: networkOf([["agent", agent], ...baseline], unstated, file),
    grading_network: networkOf([["verifier", verifier], ...baseline], unstated, file),
  });
  if (made.build) await checkBuild(made.build.context, file);
  const task = {
    task_id,
    instruction: withoutCanary(await textOf(join(folder, "instruction.md"))),
    environment: made,
    limits: limitsOf(config),
    grader: await verifierOf({ folder, file, config, source, host, unstated, options }),
    gold_script: await goldOf(folder, file, config, host),
    ...(metadata.alidade.reward_range && { reward_range: metadata.alidade.reward_range }),
    data_source: config.source,
    labels: labelsOf(config, metadata),
  };
  return parseTask(Task, task, file);
}

/** Harbor's default is the public network; here the operator must allow that. */
function unstatedNetwork({ allowPublic }: LoadOptions): NetworkAccess {
  return allowPublic ? "public" : "none";
}

/** A context that no build may have is this task's fault, and not the run's. */
async function checkBuild(context: string, file: string): Promise<void> {
  await readContext({ context, dockerfile: "Dockerfile" }).catch((error: unknown) => {
    throw error instanceof AlidadeError ? taskError(file, "environment", error.message) : error;
  });
}

function limitsOf({ environment, agent, verifier }: TaskConfig): Limits {
  const { healthcheck } = environment;
  const patience = healthcheck
    ? healthcheck.start_period_sec + healthcheck.retries * (healthcheck.interval_sec + healthcheck.timeout_sec)
    : 0;
  return Limits.parse({
    init_seconds: initSeconds + patience,
    agent_seconds: agent.timeout_sec ?? agentSeconds,
    grade_seconds: verifier.timeout_sec,
    ...statedLimits(environment),
  });
}

/** Data sets mark their files so that they are found in training data; an agent is not shown that, as in Harbor. */
const canary = /^(?:<!--.*canary.*-->|#.*canary.*)$/i;

export function withoutCanary(text: string): string {
  const lines = text.split("\n");
  let at = 0;
  while (at < lines.length && canary.test((lines[at] ?? "").trim())) at += 1;
  while (at < lines.length && (lines[at] ?? "").trim() === "") at += 1;
  return lines.slice(at).join("\n");
}

type VerifierOrder = {
  folder: string;
  file: string;
  config: TaskConfig;
  source: ImageSource;
  host: Readonly<Record<string, string>>;
  unstated: NetworkAccess;
  options: LoadOptions;
};

async function verifierOf(order: VerifierOrder): Promise<HarborSpec & Record<string, unknown>> {
  const { folder, file, config, source, host } = order;
  const { verifier, metadata } = config;
  const separate = await separateVerifier(order);
  const tests = separate?.ownsTests ? null : await testsBelow(folder, file);
  const { workdir } = config.environment;
  const inWorkdir = (path: string) => posix.resolve(workdir ?? source.stage.workdir ?? "/", path);
  return {
    kind: "harbor",
    tests,
    step_tests: null,
    env: expandEnv(verifier.env, host, file, "verifier.env"),
    user: userOf(verifier.user, separate?.source ?? source),
    hold_back: metadata.alidade.hold_back,
    verifier: separate && { environment: separate.environment, limits: separate.limits },
    artifacts: [
      { source: "/logs/artifacts", exclude: [] },
      ...config.artifacts.map((one) => ({ source: inWorkdir(one.source), exclude: one.exclude })),
    ],
    collect: verifier.collect.map(({ command, timeout_sec, user }) => ({
      command,
      timeout_seconds: timeout_sec,
      user: user === null ? null : userOf(user, source),
    })),
  };
}

async function testsBelow(folder: string, file: string): Promise<string> {
  const script = await lstat(join(folder, "tests/test.sh")).catch(() => null);
  if (!script?.isFile()) throw taskError(file, "tests/test.sh", "is no file (links are not followed): Harbor's verifier runs it");
  return testsFolder(folder, file);
}

function testsFolder(folder: string, file: string): Promise<string> {
  return folderBelow(folder, "tests", file, "tests");
}

/** The folder of the build; nothing is read from it where the task names an image. */
async function contextOf(folder: string, file: string, { environment }: TaskConfig): Promise<string> {
  return environment.docker_image === null ? folderBelow(folder, "environment", file, "environment") : folder;
}

/** A container of the verifier's own: its image, the one that tests/Dockerfile makes, or the task's. */
async function separateVerifier({ folder, file, config, source, host, unstated, options }: VerifierOrder) {
  const { verifier, environment } = config;
  const mode = verifier.environment_mode ?? (verifier.environment ? "separate" : "shared");
  if (mode === "shared") return null;
  const own: EnvironmentConfig = verifier.environment ?? environment;
  const field = verifier.environment ? "verifier.environment" : "environment";
  const hasImage = verifier.environment?.docker_image != null;
  const ownsTests = hasImage || (await exists(join(folder, "tests/Dockerfile")));
  const imaged = { ...own, docker_image: hasImage ? own.docker_image : null };
  const place = { folder: join(folder, "tests"), file, field };
  const from = ownsTests
    ? await imageSource(imaged, hasImage ? place : { ...place, folder: await testsFolder(folder, file) }, options)
    : source;
  const network = networkOf(
    [
      ["verifier", verifier],
      [field, own],
    ],
    unstated,
    file,
  );
  const made = toEnvironment({
    config: own,
    source: from,
    env: expandEnv(own.env, host, file, `${field}.env`),
    user: userOf(verifier.user, from),
    network: "none",
    grading_network: network,
  });
  if (made.build) await checkBuild(made.build.context, file);
  return { environment: made, limits: statedLimits(own), ownsTests, source: from };
}

async function goldOf(folder: string, file: string, { solution }: TaskConfig, host: Readonly<Record<string, string>>) {
  const script = await lstat(join(folder, "solution/solve.sh")).catch(() => null);
  if (!script?.isFile()) return undefined;
  return {
    files: await folderBelow(folder, "solution", file, "solution"),
    command: ["sh", "-c", "chmod +x /solution/solve.sh; /solution/solve.sh"],
    env: { DEBIAN_FRONTEND: "noninteractive", ...expandEnv(solution.env, host, file, "solution.env") },
  };
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
