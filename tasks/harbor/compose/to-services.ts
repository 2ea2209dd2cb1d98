/** Services of a compose file as those of a task. */
import { Services } from "../../../base/schema/environment/services.ts";
import type { Environment } from "../../../base/schema/task.ts";
import { folderBelow } from "../../host-path.ts";
import { issuesError, taskError } from "../../task-error.ts";
import { checkBuild } from "../check-build.ts";
import type { ComposeHealthcheck, MainConfig, SidecarConfig } from "./service-config.ts";

/** `agent`: what the file calls `main`, the agent's sandbox. */
type ReadCompose = { folder: string; file: string; agent: string; main: MainConfig; sidecars: ReadonlyMap<string, SidecarConfig> };

export async function toServices(compose: ReadCompose): Promise<Services> {
  assertTogether(compose);
  assertOwnVolumes(compose);
  const completing = completed(compose);
  const made = [...compose.sidecars].map(async ([name, config]) => [name, await toService(compose, name, config, completing.has(name))]);
  const services = Object.fromEntries(await Promise.all(made));
  const parsed = Services.safeParse(services);
  if (parsed.success) return parsed.data;
  throw issuesError(parsed.error.issues, services, compose.file, "services");
}

async function toService({ folder, file }: ReadCompose, name: string, config: SidecarConfig, completes: boolean) {
  const { build, environment, depends_on, volumes, networks = [], hostname, container_name } = config;
  const aliases = [hostname, container_name, ...networks.flatMap((one) => one.aliases)].filter((one) => one !== undefined && one !== name);
  return {
    image: build ? null : (config.image ?? null),
    build: build ? await ownBuild(folder, build, file, `services.${name}.build`) : null,
    entrypoint: config.entrypoint ?? null,
    command: config.command ?? null,
    env: environment,
    user: config.user ?? null,
    workdir: config.working_dir ?? null,
    healthcheck: completes ? "completed" : healthcheckOf(config.healthcheck),
    depends_on: Object.fromEntries(
      Object.entries(depends_on).map(([other, condition]) => [other, condition === "service_started" ? "started" : "ready"]),
    ),
    aliases: [...new Set(aliases)],
    folders: volumes.map(({ target }) => target),
    ...limitsOf(config),
  };
}

/** A service's folder lies in the one of the compose file. */
async function ownBuild(folder: string, build: NonNullable<SidecarConfig["build"]>, file: string, field: string) {
  const context = await folderBelow(folder, build.context, file, `${field}.context`);
  await checkBuild({ ...build, context }, file, field);
  return { ...build, context };
}

export function limitsOf({ mem_limit, cpus, pids_limit, deploy }: Pick<SidecarConfig, "mem_limit" | "cpus" | "pids_limit" | "deploy">) {
  const { limits = {} } = deploy?.resources ?? {};
  const [memory, processors, processes] = [limits.memory ?? mem_limit, limits.cpus ?? cpus, limits.pids ?? pids_limit];
  return {
    ...(memory !== undefined && { memory_mb: memory }),
    ...(processors !== undefined && { cpus: processors }),
    ...(processes !== undefined && { pids: processes }),
  };
}

/** null: the image's own. */
export function healthcheckOf(config: ComposeHealthcheck | undefined): Environment["healthcheck"] {
  if (config === undefined || (config.test === undefined && !config.disable)) return null;
  const { test = "", interval, timeout, retries, start_period } = config;
  const [kind, ...words] = typeof test === "string" ? ["CMD-SHELL", test] : test;
  if (config.disable || kind === "NONE") return "none";
  const command = kind === "CMD" ? words : words.join(" ");
  return { command, interval_seconds: interval, timeout_seconds: timeout, retries, start_period_seconds: start_period };
}

/** Services that others wait for until they have ended. */
function completed({ main, sidecars }: ReadCompose): Set<string> {
  const waits = [main, ...sidecars.values()].flatMap(({ depends_on }) => Object.entries(depends_on));
  return new Set(waits.flatMap(([name, condition]) => (condition === "service_completed_successfully" ? [name] : [])));
}

/** All services of a sandbox reach each other: networks that keep some of them apart would be another task. */
function assertTogether({ file, agent, main, sidecars }: ReadCompose): void {
  const places = [[agent, main] as const, ...sidecars].map(([name, { networks }]) => ({
    name,
    networks: networks?.map((one) => one.name) ?? ["default"],
  }));
  const [first] = places;
  const shared = first?.networks.filter((network) => places.every((one) => one.networks.includes(network))) ?? [];
  const apart = places.find(({ networks }) => networks.join() !== first?.networks.join());
  if (shared.length > 0 || apart === undefined) return;
  const why = `${agent} is in ${first?.networks.join(", ")}, and all services of a sandbox reach each other: name one network for all, or none`;
  throw taskError(file, `services.${apart.name}.networks`, `are ${apart.networks.join(", ")}: ${why}`);
}

/** A volume of one service alone is a folder of its layer, for nothing outlives the sandbox. */
function assertOwnVolumes({ file, sidecars }: ReadCompose): void {
  const owners = new Map<string, string>();
  for (const [name, { volumes }] of sidecars)
    for (const [index, { source }] of volumes.entries()) {
      const other = owners.get(source) ?? name;
      if (other !== name)
        throw taskError(file, `services.${name}.volumes.${index}`, `is ${source}, which ${other} has too: services share no files`);
      owners.set(source, name);
    }
}
