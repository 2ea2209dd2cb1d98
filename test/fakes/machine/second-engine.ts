/**
 * A second Docker engine that is as far away as another machine: it has network, mounts and processes of its own, sees no
 * folder of ours, and is reached by mutual TLS alone. Everything goes with its first process.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type Docker from "dockerode";
import type { EngineAddress } from "../../../base/schema/container-engine.ts";
import { dockerClient } from "../../../sandboxes/docker/client.ts";
import { copyImage } from "../../../sandboxes/docker/hosts/copy-image.ts";
import { connectEngine, hello } from "../../../sandboxes/docker/hosts/engine-connection.ts";
import { baseImage, ensureBaseImage } from "../../../sandboxes/docker/images/made/base-image.ts";
import { quietPort } from "../../quiet-port.ts";
import { makeCertificates } from "./certificates.ts";

/** Not below /tmp, which the engine does not see. */
const parent = "/var/tmp";

export class SecondEngine implements AsyncDisposable {
  readonly address: Required<EngineAddress>;
  readonly docker: Docker;
  /** Where it looks first for images without a host in their name; what listens there is the test's. */
  readonly mirror: { address: string; port: number };
  readonly #name: string;
  readonly #folder: string;
  readonly #process: ChildProcess;
  #ended: Promise<void> | null = null;

  private constructor(name: string, folder: string, subnet: string, port: number) {
    this.#name = name;
    this.#folder = folder;
    this.address = { host: `tcp://${subnet}.2:2376`, cert_path: join(folder, "client") };
    this.mirror = { address: `${subnet}.1`, port };
    makeEngineCertificates(folder, `${subnet}.2`);
    run("ip", "netns", "add", name);
    run("ip", "link", "add", `${name}e`, "type", "veth", "peer", "name", `${name}i`, "netns", name);
    run("ip", "addr", "add", `${subnet}.1/30`, "dev", `${name}e`);
    run("ip", "link", "set", `${name}e`, "up");
    run("ip", "-n", name, "addr", "add", `${subnet}.2/30`, "dev", `${name}i`);
    run("ip", "-n", name, "link", "set", `${name}i`, "up");
    this.docker = connectEngine(this.address);
    this.#process = this.#launch();
  }

  /** With the base image on it. */
  static async start(signal: AbortSignal): Promise<SecondEngine> {
    const folder = mkdtempSync(join(parent, "alidade-engine-"));
    const number = process.pid % 4096;
    // One of 4096 small networks of those that sandboxes of Docker use too.
    const subnet = `172.${24 + (number >> 10)}.${(number >> 2) & 255}`;
    const engine = new SecondEngine(`al${number}`, folder, subnet, await quietPort());
    try {
      await engine.#ready(signal);
      const local = await dockerClient(signal);
      await ensureBaseImage({ signal });
      await copyImage(local, engine.docker, baseImage, signal);
      return engine;
    } catch (error) {
      await engine[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** As `DOCKER_HOST` and its like name it, for other processes. */
  get env(): Record<string, string> {
    return { DOCKER_HOST: this.address.host, DOCKER_TLS_VERIFY: "1", DOCKER_CERT_PATH: this.address.cert_path };
  }

  /** Takes the cable out, or puts it in again. */
  connect(isConnected: boolean): void {
    run("ip", "link", "set", `${this.#name}e`, isConnected ? "up" : "down");
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#ended ??= this.#end();
    return this.#ended;
  }

  async #end(): Promise<void> {
    const closed = new Promise((resolve) => this.#process.once("close", resolve));
    if (this.#process.exitCode === null && this.#process.kill("SIGKILL")) await closed;
    run("ip", "netns", "del", this.#name);
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
    for (const group of ["cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "blkio", "pids", "systemd", "unified", "."])
      run("sh", "-c", `find /sys/fs/cgroup/${group}/${this.#name} -depth -type d -delete 2>/dev/null || true`);
  }

  #launch(): ChildProcess {
    const tls = ["--tlsverify", "--tlscacert", "$D/ca.pem", "--tlscert", "$D/server.pem", "--tlskey", "$D/server-key.pem"];
    const listen = ["-H", this.address.host, ...tls, "--cgroup-parent", `/${this.#name}`, "--iptables=false", "--bridge=none"];
    const mirror = `--registry-mirror http://${this.mirror.address}:${this.mirror.port}`;
    const own = ["/tmp", "/root", "/run", "/home"].map((path) => `mount -t tmpfs tmpfs ${path}`).join(" && ");
    const script = `D=/var/lib/docker; mount --bind ${this.#folder} $D && ${own} && cd / && exec dockerd --storage-driver overlay2 ${mirror} ${listen.join(" ")}`;
    const apart = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"];
    return spawn("nsenter", [`--net=/run/netns/${this.#name}`, ...apart, "sh", "-c", script], { stdio: "ignore" });
  }

  async #ready(signal: AbortSignal): Promise<void> {
    for (;;) {
      signal.throwIfAborted();
      const answers = await hello(this.docker, signal).then(
        () => true,
        () => false,
      );
      if (answers) return;
      if (this.#process.exitCode !== null) throw new Error(`dockerd ended with ${this.#process.exitCode}`);
      await sleep(50);
    }
  }
}

/** What is missing for it, in a few words; null: it can be started here. */
export function secondEngineMissing(): string | null {
  if (process.platform !== "linux" || process.geteuid?.() !== 0) return "it needs root on Linux";
  try {
    run("sh", "-c", "command -v dockerd && command -v ip && command -v nsenter && command -v unshare && command -v openssl");
    return null;
  } catch {
    return "one of dockerd, ip, nsenter, unshare and openssl is missing";
  }
}

function makeEngineCertificates(folder: string, address: string): void {
  makeCertificates(
    folder,
    (["server", "client"] as const).map((name) => ({ name, altNames: `IP:${address}`, usage: name })),
  );
  const path = (name: string) => join(folder, name);
  mkdirSync(path("client"));
  const own = { "ca.pem": "ca.pem", "client.pem": "cert.pem", "client-key.pem": "key.pem" };
  for (const [from, to] of Object.entries(own)) cpSync(path(from), path(`client/${to}`));
}

function run(command: string, ...args: string[]): void {
  execFileSync(command, args, { stdio: ["ignore", "ignore", "pipe"] });
}
