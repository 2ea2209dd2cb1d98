/**
 * Podman's service of root, with storage of its own, and the processes that use it: all of them have mounts and process
 * numbers of their own, so that nothing of them stays behind. To these processes the engine is on this machine.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type Docker from "dockerode";
import { dockerClient } from "../../../sandboxes/docker/client.ts";
import { copyImage } from "../../../sandboxes/docker/hosts/copy-image.ts";
import { connectEngine, hello } from "../../../sandboxes/docker/hosts/engine-connection.ts";
import { baseImage, ensureBaseImage } from "../../../sandboxes/docker/images/made/base-image.ts";
import { until } from "./until.ts";

/** What its defaults ask for is more than the root of a small virtual machine may have; `runc` knows all versions of control groups. */
const containersConf = `[containers]
default_ulimits = ["nofile=16384:16384", "nproc=32768:32768"]
[engine]
cgroup_manager = "cgroupfs"
runtime = "runc"
events_logger = "file"
`;

export class PodmanService implements AsyncDisposable {
  readonly docker: Docker;
  /** For other processes: `DOCKER_HOST`. */
  readonly env: Record<string, string>;
  readonly #folder: string;
  readonly #process: ChildProcess;

  private constructor(folder: string) {
    this.#folder = folder;
    this.env = { DOCKER_HOST: `unix://${folder}/podman.sock` };
    this.docker = connectEngine({ host: this.env.DOCKER_HOST as string });
    const path = (name: string) => join(folder, name);
    for (const name of ["root", "run", "tmp"]) mkdirSync(path(name));
    writeFileSync(path("containers.conf"), containersConf);
    writeFileSync(path("storage.conf"), `[storage]\ndriver = "overlay"\ngraphroot = "${path("root")}"\nrunroot = "${path("run")}"\n`);
    const configured = { CONTAINERS_CONF: path("containers.conf"), CONTAINERS_STORAGE_CONF: path("storage.conf"), TMPDIR: path("tmp") };
    const service = `podman --tmpdir ${path("tmp")} system service --time 0 ${this.env.DOCKER_HOST}`;
    // Its locks lie in /dev/shm, for all of a machine.
    const script = `mount -t tmpfs tmpfs /dev/shm && exec ${service}`;
    const apart = ["--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--mount-proc"];
    // Its helper writes a file "oom" into the folder that it is started in.
    const options = { cwd: folder, env: { ...process.env, ...configured } };
    this.#process = spawn("unshare", [...apart, "sh", "-c", script], {
      ...options,
      stdio: ["ignore", "ignore", openSync(path("podman.log"), "w")],
    });
    this.#process.on("error", () => undefined); // what waits for it says so
  }

  /** With the base image on it. */
  static async start(signal: AbortSignal): Promise<PodmanService> {
    const service = new PodmanService(mkdtempSync("/var/tmp/alidade-podman-"));
    try {
      const answers = () =>
        hello(service.docker, signal).then(
          () => true,
          () => false,
        );
      await until(answers, { ms: 120_000, said: () => readFile(join(service.#folder, "podman.log"), "utf8") });
      await ensureBaseImage({ signal });
      await copyImage(await dockerClient(signal), service.docker, baseImage, signal);
      return service;
    } catch (error) {
      await service[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** A program beside it, in a folder. */
  spawn(folder: string, command: string, args: string[]): ChildProcess {
    const { NODE_TEST_CONTEXT: _, ...own } = process.env; // with it a test would take itself for a part of the caller, and run nothing
    const beside = [`--mount=/proc/${this.#process.pid}/ns/mnt`, `--pid=/proc/${this.#process.pid}/ns/pid_for_children`];
    return spawn("nsenter", [...beside, "sh", "-c", 'cd "$1" && shift && exec "$@"', "sh", folder, command, ...args], {
      env: { ...own, ...this.env, ALIDADE_TEST_ALL: "0" },
      stdio: ["ignore", "pipe", "inherit"],
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new Promise((resolve) => this.#process.once("close", resolve));
    if (this.#process.exitCode === null && this.#process.kill("SIGKILL")) await closed;
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  }
}

/** What is missing for it, in a few words; null: it can be started here. */
export function podmanMissing(): string | null {
  if (process.platform !== "linux" || process.geteuid?.() !== 0) return "it needs root on Linux";
  try {
    execFileSync("sh", ["-c", "command -v podman && command -v runc && command -v nsenter && command -v unshare"], { stdio: "ignore" });
    return null;
  } catch {
    return "one of podman, runc, nsenter and unshare is missing";
  }
}
