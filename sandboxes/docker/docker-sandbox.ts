/** One running container as a sandbox. */
import { posix } from "node:path";
import type { Duplex } from "node:stream";
import type Docker from "dockerode";
import { AlidadeError, messageOf } from "../../base/errors.ts";
import { isBelow, type TreeFile } from "../../base/files/file-tree.ts";
import type { LayerEntry } from "../../base/files/layer.ts";
import { withinTime } from "../../base/host/within-time.ts";
import { ownPlace } from "../../base/schema/environment/tool-servers.ts";
import { type Connector, connectError, noService } from "../door/connector.ts";
import { type DoorConnection, type DoorKind, doorInside, type OnConnection } from "../door/door-kind.ts";
import { joinConnections } from "../door/join-connections.ts";
import type {
  AfterFreeze,
  ChangesOptions,
  Door,
  ExecOptions,
  ExecResult,
  PausedPart,
  Sandbox,
  SandboxFacts,
  SandboxSpec,
  StateOptions,
} from "../sandbox.ts";
import { pauseContainer } from "./client.ts";
import { isUntouched, ownEtcNames, withoutUserFiles } from "./confined/own-etc.ts";
import { commandEnv, commandUserId, engineOwn, guardId, labels, type MemoryPlace, userId } from "./container.ts";
import { containerConnector, openContainerDoor } from "./container-door.ts";
import { type FileBounds, getFiles, putFiles } from "./container-files.ts";
import { ContainerHealth } from "./container-health.ts";
import { killAll, killTree, type RunOwn, treeVariable } from "./end-processes.ts";
import { engineTraits } from "./engine-traits.ts";
import { type Command, runCommand } from "./exec.ts";
import { imageAt } from "./images/image-at.ts";
import { takeSnapshot } from "./images/snapshot.ts";
import { containerLayer, type LayerQuery, putLayer } from "./layer/container-layer.ts";
import { removeContainer, removeVolumes } from "./remove.ts";
import { commandStream } from "./services/command-stream.ts";
import type { RunningServices } from "./services/service-container.ts";

/** A command of ours inside (kill, cat) that takes longer has a container that no longer answers. */
const ownCommandMs = 15_000;
/** A command that was killed is seen to have ended within a second; on a loaded machine one that was being started takes some. */
const freezeRoundMs = 2_000;
const freezeRounds = 15;
/** Commands of ours in a row that did not end: root inside has broken what they need, and a loaded machine ends one of two. */
const mostUnanswered = 2;
/** A service that ends because of what it was sent ends within seconds, also on a loaded machine. */
const soonMs = 10_000;
/** A crowd of processes that start others may need a second try; all of them can be ended instead. */
const pauseTries = 3;

export type ContainerFacts = {
  docker: Docker;
  id: string;
  /** The container's name, which its volumes carry as a label. */
  name: string;
  spec: SandboxSpec;
  facts: SandboxFacts;
  /** The image's PATH. */
  path: string;
  /** What the image's own files come to. */
  imageBytes: number;
  /** The content id of the image whose ENTRYPOINT it runs: its own, or that of its first snapshot. */
  origin: string;
  /** Memory file systems beside the layer. */
  places: MemoryPlace[];
  door: DoorKind;
  /** Where its layer is read from. */
  layer: LayerQuery["from"];
  /** Called once it is gone, or could not be removed. */
  onEnd: () => void;
};

export class DockerSandbox implements Sandbox {
  readonly id: string;
  facts: SandboxFacts;
  hostNames: readonly string[] = [];
  readonly #docker: Docker;
  readonly #name: string;
  readonly #container: Docker.Container;
  readonly #spec: SandboxSpec;
  readonly #path: string;
  readonly #places: MemoryPlace[];
  readonly #imageBytes: number;
  readonly #origin: string;
  readonly #layerBytes: number;
  readonly #health: ContainerHealth;
  readonly #doorKind: DoorKind;
  readonly #layer: LayerQuery["from"];
  readonly #onEnd: () => void;
  readonly #doors = new Set<Door>();
  /** When the agent last sent something to a service apart that took its connection. */
  #reached: number | null = null;
  #commands = 0;
  /** Commands that have not ended, those included that the engine is only about to start. */
  readonly #running = new Set<Promise<unknown>>();
  #services: RunningServices | null = null;
  readonly #connectors = new Map<string, Promise<Connector>>();
  readonly #ended = new AbortController();
  #disposing: Promise<void> | null = null;

  constructor({ docker, id, name, spec, facts, path, imageBytes, origin, places, door, layer, onEnd }: ContainerFacts) {
    this.id = id;
    this.facts = facts;
    this.#docker = docker;
    this.#name = name;
    this.#container = docker.getContainer(id);
    this.#spec = spec;
    this.#path = path;
    this.#places = places;
    this.#imageBytes = imageBytes;
    this.#origin = origin;
    this.#layerBytes = spec.limits.disk_mb * 1024 * 1024;
    const isWatched = facts.disk_limit === "watchdog";
    const mayBreak = facts.user === "root" && facts.writable === "root";
    this.#health = new ContainerHealth(this.#container, spec.limits, { isWatched, mayBreak }, (argv) =>
      this.#own(argv, `${guardId}:${guardId}`),
    );
    this.#doorKind = door;
    this.#layer = layer;
    this.#onEnd = onEnd;
  }

  /** From now on they end with it. */
  hold(services: RunningServices, hostNames: readonly string[]): void {
    this.#services = services;
    this.hostNames = hostNames;
    this.facts = { ...this.facts, services: services.facts };
  }

  path(inside: string): string {
    return inside;
  }

  exec(argv: string[], options: ExecOptions = {}): Promise<ExecResult> {
    const command = this.#exec(argv, options);
    const ended: Promise<boolean> = command.then(
      () => this.#running.delete(ended),
      () => this.#running.delete(ended),
    );
    this.#running.add(ended);
    return command;
  }

  async #exec(argv: string[], options: ExecOptions): Promise<ExecResult> {
    this.#commands += 1;
    const mark = `${this.#commands}`;
    const id = commandUserId(this.#spec, options.user);
    const user = `${id}:${id}`;
    const env: Record<string, string> = { ...commandEnv(this.#spec, this.#path), ...options.env, [treeVariable]: mark };
    if (options.programs === "outside") env.PATH = this.#pathOutside(env.PATH ?? "");
    const finished = await runCommand(this.#docker, this.id, {
      argv,
      user,
      cwd: options.cwd ?? this.#spec.workdir,
      env,
      stdin: options.stdin,
      timeout_ms: options.timeout_ms,
      deadline: options.deadline,
      max_output_bytes: options.max_output_bytes ?? this.#spec.limits.output_bytes,
      keep_output: options.keep_output,
      signal: options.signal,
      // The freeze ends processes that this cannot end. A work that breaks our commands is no failure of the machine.
      kill: () => killTree(this.#own, id, mark).catch(() => undefined),
    });
    return { ...finished, out_of_memory: await this.#health.checkAfter(finished, argv) };
  }

  async writeFiles(files: TreeFile[], folder = this.#spec.workdir): Promise<void> {
    const target = posix.resolve(this.#spec.workdir, folder);
    const places = [this.#spec.workdir, ...this.#places.map((place) => place.target)];
    const place = places.find((one) => isBelow(target, one));
    if (place === undefined && this.facts.writable === "workdir") {
      throw new AlidadeError(
        "request_invalid",
        `Nothing can be written below ${folder}: only ${places.join(", ")} are writable in the sandbox.`,
        { param: "folder" },
      );
    }
    if (files.length === 0) return;
    await putFiles(this.#container, place ?? "/", target, files, userId(this.#spec));
    await this.#health.checkRunning(`files were written below ${folder}`);
  }

  async readFiles(folder: string, bounds: FileBounds = {}): Promise<TreeFile[]> {
    const inside = posix.resolve(this.#spec.workdir, folder);
    try {
      const mayBeCut = !(await engineTraits(this.#docker)).faithfulArchives;
      const skip = Object.keys(this.#spec.mounts);
      return await getFiles(this.#container, inside, bounds, { skip, disk: this.#diskOf(inside), mayBeCut });
    } finally {
      // Throws if the container is gone, even if the read itself succeeded.
      await this.#health.checkRunning(`files were read below ${folder}`);
    }
  }

  async *changes(paths: string[], options: ChangesOptions = {}): AsyncGenerator<LayerEntry> {
    const places = this.#places.map(({ target }) => target);
    const { ownEntries } = await engineTraits(this.#docker);
    const hasUsers = (await ownEtcNames(this.#docker, this.#spec)).length > 0;
    const own = hasUsers ? withoutUserFiles(engineOwn) : engineOwn;
    const hidden = [...own, ...ownEntries, ...Object.keys(this.#spec.mounts), doorInside];
    const asked = this.#places.filter(({ target }) => paths.some((path) => isBelow(path, target)));
    const disk = this.#layerBytes + asked.reduce((sum, { megabytes }) => sum + megabytes, 0) * 1024 * 1024;
    const all = this.#places.reduce((sum, { megabytes }) => sum + megabytes, 0) * 1024 * 1024;
    const query = {
      paths,
      places,
      hidden,
      mounts: Object.keys(this.#spec.mounts),
      disk,
      passed: this.#imageBytes + this.#layerBytes + all,
      from: this.#layer,
    };
    const isLive = options.of === "setup";
    if (isLive) await pauseContainer(this.#container);
    try {
      for await (const entry of containerLayer(this.#docker, this.#container, { ...query, ...options }))
        if (!isUntouched(entry)) yield entry;
    } finally {
      if (isLive) await this.#container.unpause();
    }
    await this.#health.checkRunning("its work was taken out");
  }

  async putEntries(entries: AsyncIterable<LayerEntry>): Promise<void> {
    await putLayer(this.#container, entries, userId(this.#spec));
    await this.#health.checkRunning("a work was put into it");
  }

  /** Bytes that a folder can hold: what the image has, and what was written since. */
  #diskOf(folder: string): number {
    const places = this.#places.filter(({ target }) => isBelow(folder, target) || isBelow(target, folder));
    const beside = places.reduce((sum, place) => sum + place.megabytes, 0) * 1024 * 1024;
    return places.some(({ target }) => isBelow(folder, target)) ? beside : beside + this.#layerBytes + this.#imageBytes;
  }

  async openDoor(onConnection: OnConnection, port?: number): Promise<Door> {
    const door = await openContainerDoor(this.#docker, this.id, this.#doorKind, onConnection, port);
    this.#doors.add(door);
    return {
      url: door.url,
      [Symbol.asyncDispose]: async () => {
        this.#doors.delete(door);
        await door[Symbol.asyncDispose]();
      },
    };
  }

  async connect(service: string, port: number, signal: AbortSignal): Promise<Duplex> {
    return this.#connect("host", service, port, signal);
  }

  /**
   * Lets a port of a service apart into the sandbox: a door at that port leads to the service. Its connections are counted
   * by themselves, so an agent that opens as many as it can takes none of the host's.
   */
  async expose(service: string, port: number): Promise<void> {
    const ended = this.#ended.signal;
    const letIn = (socket: DoorConnection) => {
      this.#connect("agent", service, port, ended).then(
        (inside) => {
          const note = () => {
            this.#reached = performance.now();
          };
          note();
          joinConnections(socket, inside, note);
        },
        () => socket.resetAndDestroy(),
      );
    };
    await this.openDoor(letIn, port);
  }

  async mayHaveEnded(service: string): Promise<boolean> {
    if (!this.#services) throw noService(service);
    const end = await this.#services.endOf(service);
    if (end?.fromOutside) return false;
    // The agent reaches all that is in its own network, and nothing notes what it sends there.
    if (!this.#services.isApart(service)) return true;
    if (this.#reached === null) return false;
    return end === null || performance.now() - this.#reached - end.msAgo < soonMs;
  }

  async #connect(whose: "host" | "agent", service: string, port: number, signal: AbortSignal): Promise<DoorConnection> {
    const container = service === ownPlace ? this.id : (this.#services?.networkOf(service) ?? null);
    if (container === null) throw noService(service);
    try {
      return await (await this.#connectorTo(container, whose)).connect(port, signal);
    } catch (error) {
      signal.throwIfAborted();
      throw connectError(service, port, error);
    }
  }

  #connectorTo(container: string, whose: "host" | "agent"): Promise<Connector> {
    const key = `${whose} ${container}`;
    const connector = this.#connectors.get(key) ?? containerConnector(this.#docker, container, this.#doorKind);
    this.#connectors.set(key, connector);
    connector.catch(() => this.#connectors.delete(key));
    return connector;
  }

  async start(service: string, argv: string[], signal: AbortSignal): Promise<Duplex> {
    if (service === ownPlace) {
      const id = userId(this.#spec);
      const as = { user: `${id}:${id}`, cwd: this.#spec.workdir, env: commandEnv(this.#spec, this.#path) };
      return commandStream(this.#docker, this.id, argv, signal, as);
    }
    if (!this.#services) throw noService(service);
    return this.#services.start(service, argv, signal);
  }

  async readState(service: string, options: StateOptions): Promise<TreeFile[]> {
    if (!this.#services) throw noService(service);
    return this.#services.readState(service, options);
  }

  /** Where only reads follow, the engine stops all processes at once: one request in the place of two commands inside. */
  async freeze(next: AfterFreeze = "commands"): Promise<void> {
    if (next === "reads" && this.#running.size === 0 && (await this.#isPaused())) return;
    await this.#endAll();
  }

  /** False where the engine cannot stop them: rootless ones without control groups, or processes that hang in the kernel. */
  #isPaused(): Promise<boolean> {
    return pauseContainer(this.#container, pauseTries).then(
      () => true,
      () => false,
    );
  }

  /** A process of the agent's that starts others faster than they are killed stops with the whole container. */
  async #endAll(): Promise<void> {
    let unanswered = 0;
    for (let round = 0; round < freezeRounds; round += 1) {
      const areGone = await killAll(this.#own, userId(this.#spec)).catch(notAnswered);
      unanswered = areGone === null ? unanswered + 1 : 0;
      if (unanswered === mostUnanswered) break;
      // A command that the engine had not started yet was not there to be killed: it is, in the next round.
      await withinTime(Promise.all(this.#running), freezeRoundMs);
      if (this.#running.size === 0 && areGone) {
        // Root may have replaced the programs that were just asked.
        if (this.facts.user === "root" && this.facts.writable === "root") await pauseContainer(this.#container);
        return;
      }
    }
    if (this.#running.size > 0)
      throw new AlidadeError("sandbox_error", `${this.#running.size} commands of the sandbox could not be ended.`);
    await pauseContainer(this.#container);
  }

  async isAsNew(): Promise<boolean> {
    const { image, image_digest } = this.facts;
    const isRunning = this.#container.inspect().then(({ State }) => State.Running && !State.Paused);
    const look = image === null ? null : imageAt(this.#docker, image).inspect();
    const isItsImage = look?.then(({ Id }) => Id === image_digest);
    const areItsServices = this.#services?.areAsNew();
    return (await Promise.all([isRunning, isItsImage, areItsServices ?? true]).catch(() => [false])).every((one) => one !== false);
  }

  async pause(who: PausedPart = "all"): Promise<void> {
    await Promise.all([this.#pauseOwn(), who === "all" && this.#services?.pause()]);
  }

  /** The engine refuses to pause one that is paused. */
  async #pauseOwn(): Promise<void> {
    if (!(await this.#container.inspect()).State.Paused) await pauseContainer(this.#container);
  }

  async resume(): Promise<void> {
    await Promise.all([this.#unpause(), this.#services?.resume()]);
  }

  /** The engine refuses to unpause one that runs. */
  async #unpause(): Promise<void> {
    if ((await this.#container.inspect()).State.Paused) await this.#container.unpause();
  }

  /** Paused meanwhile, so that its layer and its memory file systems are of one moment. */
  async snapshot(signal: AbortSignal): Promise<string> {
    const wasPaused = (await this.#container.inspect()).State.Paused;
    if (!wasPaused) await this.pause();
    try {
      const from = { origin: this.#origin, places: this.#places, run_id: this.#spec.run_id };
      return await takeSnapshot(this.#docker, this.#container, from, signal);
    } finally {
      if (!wasPaused) await this.resume();
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#disposing ??= this.#dispose().finally(this.#onEnd);
    return this.#disposing;
  }

  async #dispose(): Promise<void> {
    this.#health.stop();
    this.#ended.abort(new AlidadeError("sandbox_died", "The sandbox is gone already."));
    const connectors = [...this.#connectors.values()].map(async (one) => (await one)[Symbol.asyncDispose]());
    await Promise.allSettled([...connectors, ...[...this.#doors].map((door) => door[Symbol.asyncDispose]())]);
    const { holdsNetworks } = await engineTraits(this.#docker);
    const services = Promise.resolve(this.#services?.[Symbol.asyncDispose]());
    if (holdsNetworks) await Promise.allSettled([services]);
    const ended = await Promise.allSettled([services, this.#remove()]);
    const errors = ended.flatMap((one) => (one.status === "rejected" ? [one.reason] : []));
    if (errors.length > 0)
      throw new AlidadeError("sandbox_error", `The sandbox could not be removed: ${errors.map(messageOf).join("; ")}`, {
        cause: new AggregateError(errors),
      });
  }

  async #remove(): Promise<void> {
    const { keepsVolumes } = await engineTraits(this.#docker);
    const isOurs = await removeContainer(this.#container);
    // Else volumes remain only when another process removed the container first.
    if (!isOurs || keepsVolumes) await removeVolumes(this.#docker, [`${labels.sandbox}=${this.#name}`]);
  }

  /** A command of ours, which runs and loads nothing from where the agent writes; its own failure is not the sandbox's. */
  readonly #own: RunOwn = async (argv, user) => {
    const env = { PATH: this.#pathOutside(this.#path), LD_PRELOAD: "", LD_LIBRARY_PATH: "" };
    const command: Command = { argv, user, cwd: "/", env, max_output_bytes: 64_000, timeout_ms: ownCommandMs, kill: async () => {} };
    const finished = await runCommand(this.#docker, this.id, command);
    // An engine opens /etc/passwd before it starts a command, and waits for ever where root inside made a pipe of it.
    if (finished.timed_out) throw new AlidadeError("sandbox_error", "The sandbox does not run commands any more.");
    return finished;
  };

  /** Its folders where the agent cannot write. */
  #pathOutside(path: string): string {
    // Below a workdir "/" lies everything, and the image's programs are all that there is.
    const places = [this.#spec.workdir, ...this.#places.map(({ target }) => target)].filter((place) => place !== "/");
    const isOurs = (folder: string) => folder.startsWith("/") && !places.some((place) => isBelow(posix.resolve(folder), place));
    return path.split(":").filter(isOurs).join(":");
  }
}

/** null: no command of ours runs there any more. Throws what else went wrong. */
function notAnswered(error: unknown): null {
  if (error instanceof AlidadeError && error.code === "sandbox_error") return null;
  throw error;
}
