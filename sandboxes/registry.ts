/** The backends that can hold a sandbox. Adding one is a file here and a line below. */
import { AlidadeError, messageOf } from "../base/errors.ts";
import { registryOf } from "../base/host/plug-ins.ts";
import type { Reaped, ReapOptions } from "../base/host/reap.ts";
import type { EngineAddress } from "../base/schema/container-engine.ts";
import { isIsolated } from "../base/schema/rollout.ts";
import { docker } from "./docker.ts";
import { localProcess } from "./process.ts";
import type { SandboxBackend } from "./sandbox.ts";

/** It stands in records and on terminals. `shared` is a word of our own there. */
const isolationWord = /^(?!shared$)[a-z][a-z0-9-]{0,31}$/;

/** In the order in which `auto` asks them. */
export const backends = [docker, localProcess] as const satisfies readonly SandboxBackend[];

export const backendRegistry = registryOf<SandboxBackend>({
  noun: "sandbox backend",
  param: "sandbox",
  list: backends,
  members: {
    name: "text",
    title: "text",
    capabilities: "object",
    at: "function?",
    notes: "function?",
    unavailable: "function",
    prepare: "function",
    takes: "function",
    room: "function",
    create: "function",
    images: "object?",
    removeSnapshot: "function?",
    reap: "function",
  },
  made: withIsolationSaid,
});

/** A backend that does not say how it isolates must not be taken for one that does. */
function withIsolationSaid(backend: SandboxBackend): SandboxBackend {
  const isolation: unknown = backend.capabilities.isolation;
  if (typeof isolation === "string" && isolationWord.test(isolation)) return backend;
  throw new AlidadeError(
    "plugin_invalid",
    `the sandbox backend ${backend.name} has capabilities.isolation ${JSON.stringify(isolation) ?? "not given"}: give one word in small letters, none where it isolates nothing; shared is taken`,
    { param: "sandbox" },
  );
}

/** What can be asked for, files of plug-ins aside. */
export const backendNames: readonly string[] = ["auto", ...backends.map((backend) => backend.name)];

export type PickedBackend = {
  backend: SandboxBackend;
  /** For people: which one, and why. */
  reason: string;
};

export type PickOptions = {
  /** Container engines that sandboxes are spread over; none: the one of this machine. */
  docker_engines?: readonly EngineAddress[] | undefined;
  needs?: BackendNeeds;
};

/** What a caller cannot do without. */
export type BackendNeeds = { isolated?: true; images?: true };

/**
 * Returns the backend of that name, or of a user's file; with `auto` the first one of the list that has what is needed and is
 * ready. Throws `sandbox_unavailable` where there is none, `config_invalid` for a named one that lacks what is needed, and
 * `plugin_unknown` for a name that is none.
 */
export async function pickBackend(
  name: string,
  signal: AbortSignal,
  { docker_engines = [], needs = {} }: PickOptions = {},
): Promise<PickedBackend> {
  const placed = (backend: SandboxBackend): SandboxBackend =>
    (docker_engines.length > 0 ? backend.at?.(docker_engines) : undefined) ?? backend;
  if (name !== "auto") return pickNamed(placed(await backendRegistry.load(name)), needs, signal);
  const missing: string[] = [];
  for (const backend of backends.map(placed)) {
    const reason = whatLacks(backend, needs) ?? (await backend.unavailable(signal));
    if (reason === null) return { backend, reason: [`Sandboxes run in ${backend.title}.`, ...missing].join(" ") };
    missing.push(reason);
  }
  throw new AlidadeError("sandbox_unavailable", `There is nothing to run a sandbox in. ${missing.join(" ")}`);
}

function whatLacks({ title, capabilities }: SandboxBackend, { isolated, images }: BackendNeeds): string | null {
  if (isolated && !isIsolated(capabilities.isolation)) return `Sandboxes in ${title} are not isolated.`;
  if (images && !capabilities.images) return `Sandboxes in ${title} are made from no images.`;
  return null;
}

async function pickNamed(backend: SandboxBackend, needs: BackendNeeds, signal: AbortSignal): Promise<PickedBackend> {
  const lacks = whatLacks(backend, needs);
  if (lacks !== null) {
    const others = backends.filter((one) => whatLacks(one, needs) === null).map((one) => one.name);
    throw new AlidadeError("config_invalid", `${lacks} Use another backend (--sandbox ${others.join(", ")})`, { param: "sandbox" });
  }
  const reason = await backend.unavailable(signal);
  if (reason !== null) throw new AlidadeError("sandbox_unavailable", reason, { param: "sandbox" });
  return { backend, reason: `Sandboxes run in ${backend.title}, as asked for.` };
}

/**
 * Removes everything that Alidade made on this host for dead owners or with an expired lease: containers with their
 * volumes, folders and processes. With `all`, also what living processes own. Failures are reported beside what was
 * removed, and do not stop the rest. Running it twice is harmless.
 */
export async function reapAll(options: ReapOptions, signal: AbortSignal): Promise<Reaped> {
  const all: Reaped = { removed: [], failed: [] };
  for (const backend of backends) {
    if ((await backend.unavailable(signal)) !== null) continue;
    const { removed, failed } = await backend.reap(options, signal).catch((error: unknown): Reaped => {
      signal.throwIfAborted();
      return { removed: [], failed: [`sandboxes in ${backend.title}: ${messageOf(error)}`] };
    });
    all.removed.push(...removed);
    all.failed.push(...failed);
  }
  return all;
}
