/** A place to run untrusted commands in, leased as a scope: `await using sandbox = await backend.create(spec, signal)`. */
import type { Duplex } from "node:stream";
import type { TreeFile } from "../base/files/file-tree.ts";
import type { LayerEntry } from "../base/files/layer.ts";
import type { LayerRules } from "../base/files/layer-bounds.ts";
import type { Reaped, ReapOptions } from "../base/host/reap.ts";
import type { Environment, Limits } from "../base/schema/task.ts";
import type { PreparedImage, Pruned, PruneOptions, StoredImage } from "./image-store.ts";

export type SandboxSpec = {
  /** Labels that a reaper finds it by. */
  run_id: string;
  owner: string;
  /** null: Alidade's base image. The process backend ignores it. */
  image: string | null;
  /** Instead of `image`. Its context is a folder of the host. */
  build?: Environment["build"];
  /** Instead of both: the id of a snapshot of a sandbox with the same workdir and user. The image's own start runs again. */
  snapshot?: string;
  workdir: string;
  /** Path inside -> folder on the host, mounted read-only (harness packs, dependencies). Host paths come from us, never from a task file. */
  mounts: Record<string, string>;
  env: Record<string, string>;
  limits: Limits;
  /** Default: `agent`, an unprivileged user. Where all is writable, `root` has what package managers need, and else no capability. */
  user?: Environment["user"];
  /** Default: `workdir`. */
  writable?: Environment["writable"];
  /** Default: the image's own. */
  healthcheck?: Environment["healthcheck"];
  /** Whether processes may watch files; default: no. The process backend does not hold to it. */
  inotify?: boolean;
  /** `linux/amd64`; default: the image's. */
  platform?: string | null;
  /** Containers beside it. They begin anew for each sandbox, one from a snapshot too. */
  services?: Environment["services"];
};

export type ExecOptions = {
  /** Absolute inside the sandbox; default: the workdir. */
  cwd?: string;
  env?: Record<string, string>;
  /**
   * Default: the sandbox's own user. `judge` and `work` are two others, who own nothing and can neither signal nor trace
   * each other: tests, and the work that they test. The process sandbox has one user for all.
   */
  user?: "agent" | "root" | "judge" | "work";
  /**
   * `outside`: folders of PATH that lie in the workdir are left out, so that no file of a work runs in the place of a
   * program. Default: all of PATH. The process sandbox does not hold to it.
   */
  programs?: "outside";
  /** Killed with its whole process tree after this. */
  timeout_ms?: number;
  /** The same when this fires: for a clock that stands still at times. */
  deadline?: AbortSignal;
  /** Bytes kept of stdout and stderr each; the rest is counted and dropped. */
  max_output_bytes?: number;
  /** Which part of each is kept when it is more than that. Default: the start. */
  keep_output?: "start" | "end";
  stdin?: string;
  signal?: AbortSignal;
};

export type ExecResult = {
  exit_code: number | null;
  stdout: string;
  stderr: string;
  timed_out: boolean;
  out_of_memory: boolean;
  /** Bytes that were dropped over max_output_bytes. */
  dropped_bytes: number;
  duration_ms: number;
};

/** A container beside a sandbox. `image`: as the task names it; `image_digest`: the engine's content id. */
export type ServiceFacts = { name: string; image: string; image_digest: string };

/** What goes into the rollout's record about where it ran. */
export type SandboxFacts = {
  backend: string;
  /** `shared`: a container that grades and was the agent's. */
  isolation: "container" | "shared" | "none";
  /** As the task names it; `alidade/built:…` for one that was built for it. */
  image: string | null;
  /** The engine's content id (`sha256:…`). */
  image_digest: string | null;
  /** `name@sha256:…`, by which a registry knows the image; null where it came from none. */
  image_repo_digest: string | null;
  /** `name version` of the packages in the image; null where they are unknown. */
  packages: string[] | null;
  user: "agent" | "root";
  /** Where the agent can write beside HOME and the temporary folders: as far as its user may, all of the root or the workdir alone. */
  writable: "root" | "workdir";
  /**
   * What holds it to `disk_mb`. `overlay`: its layer lies on a file system of that size. `watchdog`: its layer is measured
   * every few seconds, and one that is larger ends it. `none`: nothing.
   */
  disk_limit: "overlay" | "watchdog" | "none";
  /** Which system calls it has. `own`: those of Alidade's profile; `engine`: those of the engine's (older records); `none`: all. */
  seccomp: "own" | "engine" | "none";
  /** The address of the engine that it is at, where the operator lists some; null: the one of this machine, or none. */
  engine: string | null;
  /** Left out: the task has none. */
  services?: ServiceFacts[];
};

/** A sandbox that no engine makes has no image, and nothing holds its disk or its system calls. */
export const factsWithoutEngine = {
  image: null,
  image_digest: null,
  image_repo_digest: null,
  packages: null,
  user: "agent",
  writable: "root",
  disk_limit: "none",
  seccomp: "none",
  engine: null,
} as const satisfies Partial<SandboxFacts>;

/** How changes are read. */
export type ChangesOptions = Omit<LayerRules, "disk"> & { signal?: AbortSignal };

/** The sandbox's one way out: connections to `url` inside it arrive at `onConnection`, already known as this sandbox's. */
export interface Door extends AsyncDisposable {
  /** As seen from inside, without a trailing slash: `http://127.0.0.1:4000` in Docker. */
  readonly url: string;
}

/**
 * What is done with a frozen sandbox: `reads` alone, and then it goes, so that processes may also stop for good where they
 * stand; or `commands` too.
 */
export type AfterFreeze = "reads" | "commands";

export interface Sandbox extends AsyncDisposable {
  readonly id: string;
  readonly facts: SandboxFacts;
  /** Names of hosts that commands reach without a network: those of its services. */
  readonly hostNames?: readonly string[];
  /**
   * Absolute path, as the sandbox's own commands see it, of a place inside: in Docker the path itself, in the process
   * sandbox its stand-in in a temporary folder. Mounts, the workdir and `/home/agent` can be asked for.
   */
  path(inside: string): string;
  exec(argv: string[], options?: ExecOptions): Promise<ExecResult>;
  /** Writes files below a folder inside (default: the workdir), owned by the sandbox's user. */
  writeFiles(files: TreeFile[], folder?: string): Promise<void>;
  /**
   * What differs below absolute paths (`/`: everywhere) from what the sandbox was made from, read from outside and bounded,
   * also links, folders, modes and deletions. Nothing of the agent's is executed. Ask for it after `freeze` (or `of: "setup"`,
   * while nothing inside goes on), and read each file's content before the next entry. What stands in `known` is told also
   * where it is as it was then, or again as in what the sandbox was made from, and as deleted where it is gone.
   */
  changes(paths: string[], options?: ChangesOptions): AsyncIterable<LayerEntry>;
  /** Puts a layer's entries at their paths, in place of what stands there. Deletions are not applied. */
  putEntries(entries: AsyncIterable<LayerEntry>): Promise<void>;
  /** Regular files below a folder inside, read from outside and bounded: nothing of the agent's is executed. */
  readFiles(folder: string, bounds?: { max_files?: number; max_bytes?: number; exclude?: string[] }): Promise<TreeFile[]>;
  /** `port` inside, so that a sandbox has several; default: 4000. A backend that takes another one says it in the door's URL. */
  openDoor(onConnection: (socket: Duplex) => void, port?: number): Promise<Door>;
  /** Ends every process inside but keeps the files: nothing of the agent runs while its work is taken out. */
  freeze(next?: AfterFreeze): Promise<void>;
  /**
   * Whether a new one of the same specification would be the same now: it lives, and its image is still the one of that name.
   * Asked before one that was made ahead is handed out. Never rejects; left out where nothing can have changed.
   */
  isAsNew?(): Promise<boolean>;
  /** Stops all processes inside where they stand, until `resume`; no command runs meanwhile. */
  pause?(): Promise<void>;
  /** Nothing where none stands still. */
  resume?(): Promise<void>;
  /**
   * Keeps its files as they are, HOME and temporary folders too, and returns an id for `SandboxSpec.snapshot`. It goes on
   * afterwards. Processes are not kept. This and the two above are there where `capabilities.snapshot` is true.
   */
  snapshot?(signal: AbortSignal): Promise<string>;
}

/** MiB of memory and of disk; null where unknown. A sandbox disk in memory counts as memory. */
export type Room = { memory_mb: number | null; disk_mb: number | null };

/** What a backend can do. A task that needs more is refused before the run. */
export type Capabilities = {
  /** none: a command has the rights of Alidade's user. */
  readonly isolation: "container" | "none";
  /** What a sandbox reaches beside its door: nothing, or all that this machine reaches. */
  readonly network: "none" | "host";
  /** Sandboxes are made from images. */
  readonly images: boolean;
  /** Its sandboxes may be on another machine. */
  readonly remote: boolean;
  /** Users that a task may ask for. */
  readonly users: readonly Environment["user"][];
  /** A sandbox can be kept as it is and started from there again. */
  readonly snapshot: boolean;
  /** Services can run beside a sandbox. Left out: no. */
  readonly services?: boolean;
};

export type PrepareOptions = {
  signal: AbortSignal;
  /** Gets one short sentence at a time, for people. */
  progress?: (line: string) => void;
  /** Asked before something is pulled or built. Rejects with `store_full` where the disk has too little space, which then ends it all. */
  space?: (signal: AbortSignal) => Promise<void>;
  /** For whom: kept beside the images. `tasks`: the task of each environment. */
  user?: { run_id: string; tasks: string[] };
};

/** What sandboxes are made from, where a backend keeps it. */
export interface ImageStore {
  /** For each environment its image, or what it failed with. Throws `task_invalid` for an environment that cannot be. */
  prepare(environments: Environment[], options: PrepareOptions): Promise<PreparedImage[]>;
  /** Last used first. */
  list(signal: AbortSignal): Promise<StoredImage[]>;
  /** Least recently used first, and nothing that is in use. */
  prune(options: PruneOptions, signal: AbortSignal): Promise<Pruned>;
  /** What an image says beside its files: the commands that made it, its variables and labels. Left out: it is not known. */
  words?(image: string, signal: AbortSignal): Promise<string[]>;
}

export interface SandboxBackend {
  readonly name: string;
  readonly title: string;
  readonly capabilities: Capabilities;
  /** null: ready. Otherwise a sentence that says why not and what would help. */
  unavailable(signal: AbortSignal): Promise<string | null>;
  /** Makes once what sandboxes of these environments start from, such as the base image. Throws `sandbox_unavailable`. */
  prepare(environments: Environment[], options: PrepareOptions): Promise<void>;
  /** What a sandbox with these limits may take of the machine at most, with the services beside it. */
  takes(limits: Limits, services?: Environment["services"]): Room;
  /** What the machine has for all sandboxes together. */
  room(signal: AbortSignal): Promise<Room>;
  create(spec: SandboxSpec, signal: AbortSignal): Promise<Sandbox>;
  readonly images?: ImageStore;
  /** Throws `not_found` for one that is not there. */
  removeSnapshot?(id: string, signal: AbortSignal): Promise<void>;
  /** Removes what dead processes left behind, as far as it can. */
  reap(options: ReapOptions, signal: AbortSignal): Promise<Reaped>;
}
