/** A sandbox runs untrusted commands. It is leased as a scope: `await using sandbox = await backend.create(spec, signal)`. */
import type { Duplex } from "node:stream";
import type { TreeFile } from "../base/files/file-tree.ts";
import type { LayerEntry } from "../base/files/layer.ts";
import type { LayerRules } from "../base/files/layer-bounds.ts";
import type { Reaped, ReapOptions } from "../base/host/reap.ts";
import type { EngineAddress } from "../base/schema/container-engine.ts";
import type { Isolation } from "../base/schema/rollout.ts";
import type { Environment, Limits } from "../base/schema/task.ts";
import type { PreparedImage, Pruned, PruneOptions, StoredImage } from "./image-store.ts";

export type SandboxSpec = {
  /** A reaper finds the sandbox by these two labels. */
  run_id: string;
  owner: string;
  /** null: Alidade's base image. The process backend ignores it. */
  image: string | null;
  /** Is built, and used instead of `image`. Its `context` is a folder of the host. */
  build?: Environment["build"];
  /**
   * Id of a snapshot, used instead of `image` and `build`. It was taken of a sandbox with the same `workdir` and `user`.
   * The image's own start runs again.
   */
  snapshot?: string;
  workdir: string;
  /**
   * Maps a path inside to a folder of this machine, which is mounted read-only (harness packs, dependencies). We choose the
   * folders; a task file never does. A backend whose sandboxes do not see this machine names a folder by `folderContent`, and
   * sends its `folderArchive` once to where that content is not yet (folder-archive.ts).
   */
  mounts: Record<string, string>;
  env: Record<string, string>;
  limits: Limits;
  /** Default: `agent`, an unprivileged user. `root` has the capabilities of package managers if `writable` is `root`, else none. */
  user?: Environment["user"];
  /** Default: `workdir`. */
  writable?: Environment["writable"];
  /** Default: the image's own. */
  healthcheck?: Environment["healthcheck"];
  /** Whether processes may watch files. Default: false. The process backend does not enforce it. */
  inotify?: boolean;
  /** `linux/amd64`; default: the image's. */
  platform?: string | null;
  /** Containers that run beside the sandbox. They start anew for each sandbox, also for one from a snapshot. */
  services?: Environment["services"];
  /** Which of them shows a screen: our programs and the policy of its browser are mounted there. */
  display?: Environment["display"];
};

export type ExecOptions = {
  /** Absolute inside the sandbox; default: the workdir. */
  cwd?: string;
  env?: Record<string, string>;
  /**
   * Default: the sandbox's own user. `judge` runs tests, and `work` runs what they test. These two own nothing, and
   * neither can signal or trace the other. The process sandbox runs everything as one user.
   */
  user?: "agent" | "root" | "judge" | "work";
  /**
   * `outside` leaves out the folders of PATH that lie in the workdir, so that no file of a work replaces a program.
   * Default: all of PATH. The process sandbox does not enforce it.
   */
  programs?: "outside";
  /** Kills the command and its whole process tree after this time. */
  timeout_ms?: number;
  /** Kills it likewise when this fires. Serves a clock that pauses. */
  deadline?: AbortSignal;
  /** Keeps at most this many bytes of stdout, and of stderr. Counts the rest and drops it. */
  max_output_bytes?: number;
  /** Which part of a longer output is kept. Default: `start`. */
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
  /** Bytes that were dropped because of `max_output_bytes`. */
  dropped_bytes: number;
  duration_ms: number;
};

/** A container beside a sandbox. `image`: as the task names it; `image_digest`: the engine's content id. */
export type ServiceFacts = { name: string; image: string; image_digest: string };

/** Where a rollout ran. This goes into its record. */
export type SandboxFacts = {
  backend: string;
  /** As its backend's `capabilities` say; `shared`: the agent's own sandbox, in which the work is graded too. */
  isolation: Isolation;
  /** As the task names it; `alidade/built:…` for one that was built for it. */
  image: string | null;
  /** The engine's content id (`sha256:…`). */
  image_digest: string | null;
  /** A registry knows the image by this name (`name@sha256:…`). null: the image came from no registry. */
  image_repo_digest: string | null;
  /** `name version` of the packages in the image; null where they are unknown. */
  packages: string[] | null;
  user: "agent" | "root";
  /** Where the agent's user can write, beside HOME and the temporary folders: anywhere (`root`) or in the workdir alone. */
  writable: "root" | "workdir";
  /**
   * What enforces `disk_mb`. `overlay`: the layer lies on a file system of that size. `watchdog`: the layer is measured every
   * few seconds, and the sandbox ends when it is larger. `none`: nothing does.
   */
  disk_limit: "overlay" | "watchdog" | "none";
  /** Which profile limits the system calls. `own`: Alidade's. `engine`: the engine's (older records). `none`: no profile. */
  seccomp: "own" | "engine" | "none";
  /** Address of the container engine, where the operator lists several. null: this machine's engine, or none. */
  engine: string | null;
  /** Absent: the task has none. */
  services?: ServiceFacts[];
};

/** Facts of a sandbox that no container engine makes: it has no image, and nothing limits its disk or its system calls. */
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

/** How the state of a service is read. `end`: the service is ended first, so that it writes down what it holds; else it stands still meanwhile. */
export type StateOptions = { end: boolean; signal: AbortSignal };

/** The sandbox's one way out. A connection to `url` inside arrives at `onConnection`, and is known to come from this sandbox. */
export interface Door extends AsyncDisposable {
  /** As seen from inside, without a trailing slash: `http://127.0.0.1:4000` in Docker. */
  readonly url: string;
}

/** Who stands still in a pause. `agent`: the sandbox without its services, which go on and can be asked. */
export type PausedPart = "all" | "agent";

/**
 * What follows a freeze. `reads`: files are read, and the sandbox is removed, so its processes may also be stopped without
 * being ended. `commands`: commands run in it too.
 */
export type AfterFreeze = "reads" | "commands";

export interface Sandbox extends AsyncDisposable {
  readonly id: string;
  readonly facts: SandboxFacts;
  /** Names of its services, which commands reach without a network. */
  readonly hostNames?: readonly string[];
  /**
   * The absolute path by which the sandbox's commands find a place inside. Docker returns the path itself. The process
   * sandbox returns a path in a temporary folder. Ask for mounts, the workdir or `/home/agent`.
   */
  path(inside: string): string;
  exec(argv: string[], options?: ExecOptions): Promise<ExecResult>;
  /** Writes files below a folder inside (default: the workdir), owned by the sandbox's user. */
  writeFiles(files: TreeFile[], folder?: string): Promise<void>;
  /**
   * Yields what differs below absolute paths (`/`: everywhere) from what the sandbox was made from: files, links, folders,
   * modes and deletions. It is read from outside, is bounded, and executes nothing of the agent's. Call it after `freeze`
   * (with `of: "setup"`: while nothing inside runs). Read each file's content before you take the next entry. A path in
   * `known` is always yielded, also if it did not change; if it is gone, it is yielded as deleted.
   */
  changes(paths: string[], options?: ChangesOptions): AsyncIterable<LayerEntry>;
  /** Writes a layer's entries to their paths and replaces what is there. It does not apply deletions. */
  putEntries(entries: AsyncIterable<LayerEntry>): Promise<void>;
  /** Returns regular files below a folder inside. They are read from outside, within bounds; nothing of the agent's is executed. */
  readFiles(folder: string, bounds?: { max_files?: number; max_bytes?: number; exclude?: string[] }): Promise<TreeFile[]>;
  /** Opens a door at `port` inside; default: 4000. A sandbox may have several. A backend that takes another port says it in `url`. */
  openDoor(onConnection: (socket: Duplex) => void, port?: number): Promise<Door>;
  /**
   * Connects to a port of a service on its loopback. Throws `not_found` for a name that is no service, and `sandbox_error`
   * where nothing listens there. The connection ends with the sandbox. `main` is the sandbox itself.
   */
  connect(service: string, port: number, signal: AbortSignal): Promise<Duplex>;
  /**
   * Runs a command in a service, or in the sandbox itself (`main`). The stream is its standard input and output, and ends with it. Throws `not_found` for a name
   * that is no service, and `sandbox_died` for a service that has ended.
   */
  start(service: string, argv: string[], signal: AbortSignal): Promise<Duplex>;
  /**
   * Returns the regular files that a service's `state` names, by their absolute paths without the first slash. They are
   * read from outside, within bounds. Throws `not_found` for a name that is no service, and `output_too_large`. Present
   * where `capabilities.services` is true.
   */
  readState?(service: string, options: StateOptions): Promise<TreeFile[]>;
  /**
   * Tells whether the agent's own connections may be why a service does not answer any more. True if the service still runs,
   * or ended by itself within seconds of what the agent sent. False if it was killed from outside, or if the agent has sent
   * nothing to an exposed port. Present where `capabilities.services` is true.
   */
  mayHaveEnded?(service: string): Promise<boolean>;
  /** Ends every process inside and keeps the files, so that nothing of the agent runs while its work is read. */
  freeze(next?: AfterFreeze): Promise<void>;
  /**
   * Whether this sandbox equals one that would be made now: it lives, and its image still has that name. Asked before a
   * sandbox that was made ahead is handed out. Never rejects. Absent where nothing can have changed.
   */
  isAsNew?(): Promise<boolean>;
  /** Suspends all processes inside until `resume`. No command runs meanwhile. A call for those that stand still already is no error. */
  pause?(who?: PausedPart): Promise<void>;
  /** Continues them. Does nothing where none is suspended. */
  resume?(): Promise<void>;
  /**
   * Stores all files, those of HOME and of the temporary folders too, and returns an id for `SandboxSpec.snapshot`. It
   * stores no processes. The sandbox runs on. Present, with the two above, where `capabilities.snapshot` is true; the two above
   * also where `capabilities.keepsProcesses` is.
   */
  snapshot?(signal: AbortSignal): Promise<string>;
}

/** MiB of memory and of disk. null: unknown. A sandbox's disk that lies in memory counts as memory. */
export type Room = { memory_mb: number | null; disk_mb: number | null };

/** What a backend can do. A task that needs more is refused before the run starts. */
export type Capabilities = {
  /**
   * What separates a command from this machine, in a word of the backend's own: `container`, `microvm`. It goes into records.
   * A sandbox with any word but `none` has a root, users and processes of its own. `none`: a command has the rights of
   * Alidade's user. Ask `isIsolated`, and do not compare the word.
   */
  readonly isolation: Isolation;
  /** What a sandbox reaches beside its door. `none`: nothing. `host`: all that this machine reaches. */
  readonly network: "none" | "host";
  /** Sandboxes are made from images. Absent `builds`: from images that are there or can be pulled, and none is built. */
  readonly images: boolean;
  readonly builds?: boolean;
  /** Its sandboxes may run on another machine. */
  readonly remote: boolean;
  /** Users that a task may ask for. */
  readonly users: readonly Environment["user"][];
  /** A sandbox's files can be stored, and a new sandbox made from them. */
  readonly snapshot: boolean;
  /** Services can run beside a sandbox. Absent: they cannot. */
  readonly services?: boolean;
  /** Processes of a sandbox can be suspended and go on (`pause`, `resume`), so a work can be graded while they live. Absent: no. */
  readonly keepsProcesses?: boolean;
};

/** Stands for a backend that is not known yet, which may be able to do anything. The machine that makes the sandbox asks again. */
export const allCapabilities: Capabilities = {
  isolation: "unknown",
  network: "none",
  images: true,
  builds: true,
  remote: true,
  users: ["agent", "root"],
  snapshot: true,
  services: true,
  keepsProcesses: true,
};

export type PrepareOptions = {
  signal: AbortSignal;
  /** Receives one short sentence at a time, for people. */
  progress?: (line: string) => void;
  /** Called before each pull or build. Rejects with `store_full` where the disk has too little space; then the preparation ends. */
  space?: (signal: AbortSignal) => Promise<void>;
  /** Who uses the images; stored beside them. `tasks` holds the task of each environment. */
  user?: { run_id: string; tasks: string[] };
};

/** The images that a backend makes sandboxes from. */
export interface ImageStore {
  /** Returns for each environment its image or its error. Throws `task_invalid` for an environment that no image can serve. */
  prepare(environments: Environment[], options: PrepareOptions): Promise<PreparedImage[]>;
  /** Last used first. */
  list(signal: AbortSignal): Promise<StoredImage[]>;
  /** Removes the least recently used first, and none that is in use. */
  prune(options: PruneOptions, signal: AbortSignal): Promise<Pruned>;
  /** Returns the texts of an image beside its files: the commands that built it, its variables and labels. Absent: they are unknown. */
  words?(image: string, signal: AbortSignal): Promise<string[]>;
}

export interface SandboxBackend {
  readonly name: string;
  readonly title: string;
  readonly capabilities: Capabilities;
  /**
   * The same backend, at container engines that the operator lists (`docker_engines`). Absent: it knows no such engines, and
   * the list says nothing to it.
   */
  at?(engines: readonly EngineAddress[]): SandboxBackend;
  /** Returns sentences that an operator should read before a run. Absent: there are none. */
  notes?(): Promise<string[]>;
  /** Returns null when the backend is ready; else a sentence that says why it is not, and what helps. */
  unavailable(signal: AbortSignal): Promise<string | null>;
  /** Makes once what sandboxes of these environments need, such as the base image. Throws `sandbox_unavailable`. */
  prepare(environments: Environment[], options: PrepareOptions): Promise<void>;
  /** Returns the most that a sandbox with these limits may take of the machine, its services included. It may be less once `room` was asked. */
  takes(limits: Limits, services?: Environment["services"]): Room;
  /** Returns what the machine has for all sandboxes together. */
  room(signal: AbortSignal): Promise<Room>;
  create(spec: SandboxSpec, signal: AbortSignal): Promise<Sandbox>;
  readonly images?: ImageStore;
  /** Throws `not_found` where there is no such snapshot. */
  removeSnapshot?(id: string, signal: AbortSignal): Promise<void>;
  /** Removes what dead processes left behind, as far as it is able to. */
  reap(options: ReapOptions, signal: AbortSignal): Promise<Reaped>;
}
