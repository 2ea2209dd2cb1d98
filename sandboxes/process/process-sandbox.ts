/**
 * One folder of this machine as a sandbox; what is inside at `/x` is the folder's `files/x`. Its commands see it at one
 * path that all sandboxes have, where that is possible (same-place.ts).
 */
import { type ChildProcess, spawn } from "node:child_process";
import { constants } from "node:fs";
import { lstat, mkdir, open, opendir, rm } from "node:fs/promises";
import { createServer, type Server, type Socket } from "node:net";
import { constants as osConstants } from "node:os";
import { basename, dirname, join, posix, relative } from "node:path";
import type { Duplex } from "node:stream";
import { AlidadeError, asAlidadeError } from "../../base/errors.ts";
import { checkedPath, FileCollector } from "../../base/files/file-collector.ts";
import { isBelow, plainMode, type TreeFile } from "../../base/files/file-tree.ts";
import { goneEntries } from "../../base/files/gone-entries.ts";
import type { LayerEntry } from "../../base/files/layer.ts";
import { LayerBounds } from "../../base/files/layer-bounds.ts";
import { BoundedOutput } from "../../base/host/bounded-output.ts";
import { commandEnd } from "../../base/host/processes/command-end.ts";
import { removeSandboxFolder, sandboxMark } from "../../base/host/processes/process-folder.ts";
import { killProcesses } from "../../base/host/processes/process-tree.ts";
import { withinTime } from "../../base/host/within-time.ts";
import { noService } from "../door/connector.ts";
import { maxStreams } from "../door/multiplexer.ts";
import {
  type ChangesOptions,
  type Door,
  type ExecOptions,
  type ExecResult,
  factsWithoutEngine,
  type Sandbox,
  type SandboxFacts,
  type SandboxSpec,
} from "../sandbox.ts";
import { folderLayer, putIntoFolder } from "./folder-layer.ts";
import type { SamePlace } from "./same-place.ts";

const treeVariable = "ALIDADE_EXEC";
/** How long output may still come after a command ended: a child that it left behind may hold the pipe for ever. */
const lastOutputMs = 500;

export class ProcessSandbox implements Sandbox {
  readonly id: string;
  readonly facts: SandboxFacts = { backend: "process", isolation: "none", ...factsWithoutEngine };
  readonly #folder: string;
  readonly #files: string;
  /** `files` as the sandbox's commands see it. */
  readonly #seen: string;
  readonly #place: SamePlace | null;
  readonly #spec: SandboxSpec;
  /** Process groups that were started; needed where environments cannot be read. */
  readonly #groups: number[] = [];
  readonly #doors = new Set<Door>();
  #commands = 0;
  #disposing: Promise<void> | null = null;

  constructor(folder: string, spec: SandboxSpec, place: SamePlace | null) {
    this.id = basename(folder);
    this.#folder = folder;
    this.#files = join(folder, "files");
    this.#seen = place?.path ?? this.#files;
    this.#place = place;
    this.#spec = spec;
  }

  path(inside: string): string {
    if (isBelow(inside, this.#seen)) return inside;
    return join(this.#seen, posix.resolve(this.#spec.workdir, inside));
  }

  /** Where a place inside lies on this machine. */
  outside(inside: string): string {
    return join(this.#files, relative(this.#seen, this.path(inside)));
  }

  async exec(argv: string[], options: ExecOptions = {}): Promise<ExecResult> {
    if (this.#disposing !== null) throw new AlidadeError("sandbox_died", "The sandbox is gone already.");
    options.signal?.throwIfAborted();
    this.#commands += 1;
    const mark = `${treeVariable}=${this.id}.${this.#commands}.`;
    const started = performance.now();
    const limit = options.max_output_bytes ?? this.#spec.limits.output_bytes;
    const child = this.#spawn(argv, options, mark);
    const stdout = new BoundedOutput(limit, options.keep_output).follow(child.stdout);
    const stderr = new BoundedOutput(limit, options.keep_output).follow(child.stderr);
    const end = exitOf(child);
    const why = await commandEnd(end, options);
    if (why !== "ended") {
      await killProcesses({ mark, groups: child.pid === undefined ? [] : [child.pid] });
      await withinTime(end, lastOutputMs);
    }
    if (why === "abort")
      throw new AlidadeError("cancelled", `The command was cancelled: ${argv.join(" ")}`, { cause: options.signal?.reason });
    const { exit_code, problem } = why === "ended" ? await end : { exit_code: null, problem: null };
    if (problem !== null) stderr.push(Buffer.from(`${problem}\n`));
    return {
      exit_code,
      stdout: stdout.toString(),
      stderr: stderr.toString(),
      timed_out: why === "timeout",
      out_of_memory: false, // nothing limits memory here
      dropped_bytes: stdout.dropped + stderr.dropped,
      duration_ms: performance.now() - started,
    };
  }

  #spawn(argv: string[], options: ExecOptions, mark: string): ChildProcess {
    const cwd = this.path(options.cwd ?? this.#spec.workdir);
    const [command = "", ...args] = this.#place?.wrap(this.#files, cwd, argv) ?? argv;
    const child = spawn(command, args, {
      cwd: this.#place ? this.#files : cwd,
      env: {
        PATH: [dirname(process.execPath), process.env.PATH ?? "/usr/local/bin:/usr/bin:/bin"].join(":"),
        LANG: "C.UTF-8",
        HOME: this.path("/home/agent"),
        TMPDIR: this.path("/tmp"),
        ...this.#spec.env,
        ...options.env,
        ...Object.fromEntries([mark, sandboxMark(this.#folder)].map((line) => line.split("=") as [string, string])),
      },
      detached: true, // a group of its own
      stdio: [options.stdin === undefined ? "ignore" : "pipe", "pipe", "pipe"],
    });
    if (child.pid !== undefined) this.#groups.push(child.pid);
    child.stdin?.on("error", () => {}); // a command that does not read its input is no fault
    child.stdin?.end(options.stdin);
    return child;
  }

  async writeFiles(files: TreeFile[], folder = this.#spec.workdir): Promise<void> {
    for (const file of files) {
      const target = join(this.outside(folder), checkedPath(file.path));
      try {
        await this.#makeFolder(dirname(target));
        await rm(target, { force: true }); // never through a link that stands there
        await using handle = await open(target, "wx", 0o600);
        await handle.writeFile(file.content);
        await handle.chmod(plainMode(file.mode)); // whatever this user's umask is
      } catch (error) {
        // Also of a full disk: it is the machine's, and others fill it too.
        throw asAlidadeError(error, "sandbox_error", `Writing ${file.path} below ${folder}: `);
      }
    }
  }

  /** `mkdir -p` that follows no link, so that nothing is written outside. */
  async #makeFolder(folder: string): Promise<void> {
    if (folder === this.#files) return;
    await this.#makeFolder(dirname(folder));
    const found = await lstat(folder).catch(() => null);
    if (found === null) await mkdir(folder);
    else if (!found.isDirectory()) {
      throw new AlidadeError("request_invalid", `Nothing can be written below ${folder}: it is a link or a file.`, { param: "folder" });
    }
  }

  async readFiles(folder: string, bounds: { max_files?: number; max_bytes?: number; exclude?: string[] } = {}): Promise<TreeFile[]> {
    const collector = new FileCollector(posix.resolve(this.#spec.workdir, folder), bounds, Object.keys(this.#spec.mounts));
    const root = this.outside(folder);
    const found = await lstat(root).catch(() => null);
    if (found === null) await this.#assertThere();
    if (found === null || !found.isDirectory()) throw new AlidadeError("not_found", `There is no folder ${folder} in the sandbox.`);
    try {
      await collect(root, "", collector);
    } catch (error) {
      await this.#assertThere();
      throw readError(error, folder);
    }
    return collector.files();
  }

  async *changes(paths: string[], options: ChangesOptions = {}): AsyncGenerator<LayerEntry> {
    const hidden = [...Object.keys(this.#spec.mounts), "/tmp", ...(paths.includes("/") ? ["/home/agent"] : [])];
    const disk = this.#spec.limits.disk_mb * 1024 ** 2;
    const query = { bounds: new LayerBounds({ ...options, disk }), signal: options.signal };
    const met = new Set<string>();
    try {
      for (const asked of paths.map((path) => posix.resolve("/", path))) {
        const others = hidden.filter((path) => path !== asked);
        for await (const entry of folderLayer(this.#files, asked, { ...query, hidden: others })) {
          met.add(entry.path);
          yield entry;
        }
        const isAsked = (path: string) => isBelow(path, asked) && !others.some((one) => isBelow(path, one));
        yield* goneEntries(options.known?.values() ?? [], (path) => !isAsked(path) || met.has(path));
      }
    } catch (error) {
      await this.#assertThere();
      throw readError(error, paths.join(", "));
    }
  }

  async putEntries(entries: AsyncIterable<LayerEntry>): Promise<void> {
    try {
      await putIntoFolder(this.#files, entries, (folder) => this.#makeFolder(folder));
    } catch (error) {
      throw asAlidadeError(error, "sandbox_error", "Putting a work into the sandbox: ");
    }
  }

  /** A missing file was removed inside. Where nothing is left, the sandbox itself was removed. */
  async #assertThere(): Promise<void> {
    if (await lstat(this.#files).catch(() => null)) return;
    throw new AlidadeError("sandbox_died", `The sandbox's folder ${this.#files} was removed.`);
  }

  async openDoor(onConnection: (socket: Duplex) => void): Promise<Door> {
    const sockets = new Set<Socket>();
    const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
      sockets.add(socket);
      socket.on("close", () => sockets.delete(socket));
      socket.on("error", () => {}); // a connection that is reset is the reader's business
      onConnection(socket);
    });
    server.maxConnections = maxStreams; // as in a container
    const port = await listen(server);
    const door: Door = {
      url: `http://127.0.0.1:${port}`,
      [Symbol.asyncDispose]: async () => {
        this.#doors.delete(door);
        const closed = new Promise((resolve) => server.close(resolve));
        for (const socket of sockets) socket.destroy();
        await closed;
      },
    };
    this.#doors.add(door);
    return door;
  }

  async connect(service: string): Promise<never> {
    throw noService(service);
  }

  async start(service: string): Promise<never> {
    throw noService(service);
  }

  async freeze(): Promise<void> {
    await killProcesses({ mark: sandboxMark(this.#folder), groups: this.#groups });
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#disposing ??= (async () => {
      await Promise.allSettled([...this.#doors].map((door) => door[Symbol.asyncDispose]()));
      await removeSandboxFolder(this.#folder, this.#groups);
    })();
    return this.#disposing;
  }
}

type End = { exit_code: number; problem: string | null };

/** Resolves when the command ended and what it printed has arrived. A signal counts as shells do: 128 and its number. */
function exitOf(child: ChildProcess): Promise<End> {
  return new Promise((resolve) => {
    child.once("error", (error) =>
      resolve({ exit_code: (error as NodeJS.ErrnoException).code === "EACCES" ? 126 : 127, problem: error.message }),
    );
    child.once("exit", (code, signal) => {
      const end: End = { exit_code: code ?? 128 + (signal === null ? 0 : osConstants.signals[signal]), problem: null };
      const timer = setTimeout(() => {
        child.stdout?.destroy();
        child.stderr?.destroy();
      }, lastOutputMs);
      child.once("close", () => {
        clearTimeout(timer);
        resolve(end);
      });
    });
  });
}

/** Errors of names that a program inside can create and no reader can open: no access, a path too long, a name that is no text. */
const unreadable = new Set(["EACCES", "ENAMETOOLONG", "ENOENT"]);

function readError(error: unknown, folder: string): AlidadeError {
  const isTheirs = unreadable.has((error as NodeJS.ErrnoException).code ?? "");
  return asAlidadeError(error, isTheirs ? "output_unreadable" : "sandbox_error", `Reading files below ${folder}: `);
}

/** Regular files only; folders behind links are not entered. */
async function collect(root: string, below: string, collector: FileCollector): Promise<void> {
  // A folder is read piece by piece: all names of a large one together could fill our memory.
  for await (const entry of await opendir(join(root, below), { bufferSize: 256 })) {
    const path = below === "" ? entry.name : `${below}/${entry.name}`;
    if (!collector.meets(path)) continue;
    if (entry.isDirectory()) await collect(root, path, collector);
    else if (entry.isFile()) {
      await using handle = await open(join(root, path), constants.O_RDONLY | constants.O_NOFOLLOW);
      const { size, mode } = await handle.stat();
      if (collector.wants(path, size)) collector.add(path, await handle.readFile(), mode);
    }
  }
}

function listen(server: Server): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host: "127.0.0.1", port: 0 }, () => {
      const address = server.address();
      resolve(typeof address === "object" && address !== null ? address.port : 0);
    });
  });
}
