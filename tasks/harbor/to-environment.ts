/** Harbor's environments as ours: image or build, workdir, user, network, healthcheck. */
import { lstat, readFile } from "node:fs/promises";
import { join, posix } from "node:path";
import { AlidadeError, asAlidadeError } from "../../base/errors.ts";
import { NetworkAccess } from "../../base/schema/network.ts";
import { Environment, type Limits } from "../../base/schema/task.ts";
import type { LastStage } from "../../sandboxes/index.ts";
import { imageStart, lastStageOf } from "../../sandboxes/index.ts";
import { taskError } from "../task-error.ts";
import type { LoadOptions } from "../task-format.ts";
import { checkBuild } from "./check-build.ts";
import type { ComposeParts } from "./compose/read-compose.ts";
import type { FolderOrder, ImageSource, PlacedStep } from "./folder-order.ts";
import type { EnvironmentConfig, HealthcheckConfig, StepConfig, TaskConfig } from "./task-config.ts";

type ImagePlace = {
  /** Where a Dockerfile may lie; null: there is no such folder. */
  folder: string | null;
  file: string;
  field: string;
};

/** What the image's programs start with is the engine's word, where the Dockerfile and the task do not say it. */
export async function imageSource(config: EnvironmentConfig, place: ImagePlace, options: LoadOptions): Promise<ImageSource> {
  const { file, field } = place;
  const { docker_image, workdir } = config;
  const folder = place.folder !== null && (await hasDockerfile(place.folder)) ? place.folder : null;
  if (docker_image !== null && (folder === null || options.images !== "build")) {
    const hint = folder === null ? "" : ", or build the Dockerfile that lies beside it: --images build";
    const stage = { from: docker_image, workdir, user: null };
    return { image: docker_image, build: null, stage: await startOf(stage, { file, field: `${field}.docker_image`, hint }, options) };
  }
  if (folder === null) {
    const where = place.folder === null ? "beside it" : `in ${place.folder}`;
    throw taskError(file, `${field}.docker_image`, `is missing, and there is no Dockerfile ${where}: a task has one of them`);
  }
  await checkBuild({ context: folder }, file, field);
  const last = lastStageOf(await readFile(join(folder, "Dockerfile"), "utf8"));
  const stage = { ...last, workdir: workdir ?? last.workdir };
  return { image: null, build: folder, stage: await startOf(stage, { file, field: join(folder, "Dockerfile"), hint: "" }, options) };
}

async function hasDockerfile(folder: string): Promise<boolean> {
  return (await lstat(join(folder, "Dockerfile")).catch(() => null))?.isFile() === true;
}

/** `field`: what names the image. `hint`: what helps beside the engine's own words. */
type NamedImage = { file: string; field: string; hint: string };

export async function startOf(stage: LastStage, { file, field, hint }: NamedImage, options: LoadOptions): Promise<LastStage> {
  const { from, workdir, user } = stage;
  if (options.static || from === null || from === "scratch" || (workdir !== null && user !== null)) return stage;
  const { signal = new AbortController().signal, progress } = options;
  const known = await imageStart(from, { signal, ...(progress && { progress }) }).catch((error: unknown) => {
    signal.throwIfAborted();
    const { code, message, param } = asAlidadeError(error, "sandbox_unavailable");
    throw new AlidadeError(code, `${file}: ${field}: ${message.trim().replace(/\.$/, "")}${hint}`, { cause: error, param });
  });
  return { from, workdir: workdir ?? known.workdir, user: user ?? known.user };
}

export type EnvironmentOrder = {
  config: EnvironmentConfig;
  source: ImageSource;
  env: Record<string, string>;
  user: Environment["user"];
  network: NetworkAccess;
  grading_network: NetworkAccess;
  /** What the compose file beside the Dockerfile says. */
  compose?: ComposeParts | null;
  tools?: Environment["tools"];
  /** Where the image has skills for the agent. */
  skills?: string | null;
};

/**
 * Harbor mounts these folders for all to write. Made as root before the agent starts, so that neither agent nor tests need
 * a right to.
 */
const logs = "mkdir -p /logs/agent /logs/verifier /logs/artifacts && chmod 777 /logs/agent /logs/verifier /logs/artifacts";

/** HOME and /tmp are memory file systems of ours: work may lie there too. */
export const wholeLayer = ["/", "/home/agent", "/tmp"];

export function toEnvironment({
  config,
  source,
  env,
  user,
  network,
  grading_network,
  compose,
  tools,
  skills,
}: EnvironmentOrder): Environment {
  const workdir = config.workdir ?? source.stage.workdir ?? "/";
  return Environment.parse({
    image: source.image,
    build: source.build === null ? null : { context: source.build },
    workdir,
    env,
    user,
    writable: "root",
    work: wholeLayer,
    healthcheck: config.healthcheck ? toHealthcheck(config.healthcheck) : compose?.healthcheck,
    ...(compose && Object.keys(compose.services).length > 0 && { services: compose.services }),
    ...(tools && { tools }),
    // A path within the workdir, as `cp` takes it there.
    ...(skills && { skills: posix.resolve(workdir, skills) }),
    network,
    grading_network,
    setup: { command: ["sh", "-c", logs], user: "root" },
  });
}

export function toHealthcheck({ command, interval_sec, timeout_sec, retries, start_period_sec }: HealthcheckConfig) {
  return { command, interval_seconds: interval_sec, timeout_seconds: timeout_sec, retries, start_period_seconds: start_period_sec };
}

/** What is stated; the rest is left to our defaults. */
export function statedLimits({ cpus, memory_mb, memory, storage_mb, storage }: EnvironmentConfig): Partial<Limits> {
  const [ram, disk] = [memory_mb ?? memory, storage_mb ?? storage];
  return { ...(cpus !== null && { cpus }), ...(ram !== null && { memory_mb: ram }), ...(disk !== null && { disk_mb: disk }) };
}

/**
 * A user by name or uid; null: the image's. Two are known here: root, and one other, who is uid 1000 whatever the image
 * calls it.
 */
export function userOf(named: string | number | null, source?: Pick<ImageSource, "stage">): Environment["user"] {
  const user = String(named ?? source?.stage.user ?? "root");
  return user === "root" || user === "0" ? "root" : "agent";
}

type Phase = Pick<EnvironmentConfig, "network_mode" | "allowed_hosts">;

/** `unstated`: where neither the phase nor the environment names a mode. Errors name the field that does. */
export function networkOf(
  phases: readonly (readonly [field: string, phase: Phase & { allow_internet?: boolean | null }])[],
  unstated: NetworkAccess,
  file: string,
): NetworkAccess {
  for (const [field, { network_mode, allowed_hosts, allow_internet }] of phases) {
    if (network_mode !== null) return access(network_mode, allowed_hosts, file, field);
    if (allowed_hosts !== null) throw taskError(file, `${field}.allowed_hosts`, 'stands without network_mode = "allowlist": write it');
    if (typeof allow_internet === "boolean") return allow_internet ? "public" : "none";
  }
  return unstated;
}

function access(mode: "public" | "no-network" | "allowlist", hosts: string[] | null, file: string, field: string): NetworkAccess {
  if (mode !== "allowlist" && hosts?.length)
    throw taskError(file, `${field}.allowed_hosts`, `stands beside network_mode = "${mode}": write "allowlist", or remove it`);
  if (mode === "public") return "public";
  if (mode === "no-network" || !hosts?.length) return "none";
  const parsed = NetworkAccess.safeParse({ allow: hosts });
  if (parsed.success) return parsed.data;
  const wrong = hosts.find((host) => !NetworkAccess.safeParse({ allow: [host] }).success);
  throw taskError(
    file,
    `${field}.allowed_hosts`,
    `holds ${wrong ?? hosts.length}: write names of hosts such as pypi.org or *.pypi.org, and no address or range`,
  );
}

/** Does the task say anything of the agent's network? */
export function statesNetwork({ agent, environment }: TaskConfig): boolean {
  return agent.network_mode !== null || environment.network_mode !== null || environment.allow_internet !== null;
}

/** What the agent of a task or of a step reaches: the step's word, else the task's, else the environment's. */
export function agentNetwork({ config, unstated, file }: FolderOrder, step: PlacedStep | null = null): NetworkAccess {
  const { agent, environment } = config;
  const own = step === null ? [] : [[`steps.${step.index}.agent`, step.config.agent] as const];
  return networkOf([...own, ["agent", agent], ["environment", environment]], unstated, file);
}

/** Harbor waits without an end; an agent that hangs would keep its place for ever. */
const agentSeconds = 3_600;

export function secondsOf({ timeout_sec }: TaskConfig["agent"]): number {
  return timeout_sec ?? agentSeconds;
}

export function stepSeconds(step: StepConfig, ofTask: TaskConfig["agent"]): number {
  return step.agent.timeout_sec ?? secondsOf(ofTask);
}
