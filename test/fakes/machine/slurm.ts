/** A real Slurm of a test's own: munged, slurmctld and a slurmd for each name, all on this machine, in a folder. */
import { type ChildProcess, execFile, execFileSync, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { quietPort } from "../../quiet-port.ts";
import { until } from "./until.ts";

const programs = ["munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "scontrol"];

/** What is missing for it, in a few words; null: it can be started here. */
export async function slurmMissing(): Promise<string | null> {
  if (process.platform !== "linux" || process.geteuid?.() !== 0) return "it needs root on Linux";
  const found = await promisify(execFile)("sh", ["-c", programs.map((name) => `command -v ${name}`).join(" && ")]).catch(() => null);
  return found === null ? `one of ${programs.join(", ")} is missing` : null;
}

export class Slurm implements AsyncDisposable {
  /** For commands that ask it. */
  readonly env: Record<string, string>;
  readonly #folder: string;
  readonly #names: readonly string[];
  readonly #daemons: ChildProcess[] = [];

  private constructor(folder: string, names: readonly string[]) {
    this.#folder = folder;
    this.#names = names;
    this.env = { ...(process.env as Record<string, string>), SLURM_CONF: join(folder, "slurm.conf") };
  }

  /** The folder is empty, and the caller's to remove. */
  static async start(folder: string, names: readonly string[]): Promise<Slurm> {
    const slurm = new Slurm(folder, names);
    try {
      await slurm.#start();
      return slurm;
    } catch (error) {
      await slurm[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** The output of one of its commands. Throws what it said. */
  async run(command: string, ...args: string[]): Promise<string> {
    const { stdout } = await promisify(execFile)(command, args, { env: this.env, cwd: this.#folder });
    return stdout.trim();
  }

  /** `RUNNING`, `PENDING` and so on. */
  async stateOf(job: string): Promise<string> {
    const shown = await this.run("scontrol", "--oneliner", "show", "job", job);
    return /JobState=(\w+)/.exec(shown)?.[1] ?? "";
  }

  /** No machine has a job, also none that is just ending. */
  async isIdle(): Promise<boolean> {
    const states = await this.run("sinfo", "--noheader", "--Node", "--format=%T").catch(() => "");
    return states.split("\n").filter((state) => state === "idle").length === this.#names.length;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.run("scancel", "--state=RUNNING", "--full", "--signal=KILL", "--user=root").catch(() => undefined);
    await this.run("scancel", "--user=root").catch(() => undefined);
    await until(async () => (await this.run("squeue", "--noheader").catch(() => "")) === "").catch(() => undefined);
    for (const daemon of this.#daemons.reverse()) {
      if (daemon.exitCode !== null || daemon.signalCode !== null) continue;
      const ended = once(daemon, "exit");
      daemon.kill("SIGKILL");
      await ended;
    }
  }

  async #start(): Promise<void> {
    const names = this.#names;
    const at = (name: string): string => join(this.#folder, name);
    for (const folder of ["munge", "state", ...names.map((name) => `spool.${name}`)]) mkdirSync(at(folder), { mode: 0o755 });
    writeFileSync(at("munge/key"), randomBytes(128), { mode: 0o600 });
    const files = { socket: "socket", "key-file": "key", "log-file": "log", "pid-file": "pid", "seed-file": "seed" };
    // By force: the folders above are this user's alone.
    this.#spawn("munged", ["--foreground", "--force", ...Object.entries(files).map(([flag, name]) => `--${flag}=${at(`munge/${name}`)}`)]);
    const socket = at("munge/socket");
    await until(() => isDone("munge", ["--socket", socket, "--no-input"]));
    const ports = await Promise.all([...names, "control"].map(() => quietPort()));
    writeFileSync(at("slurm.conf"), configuration(this.#folder, names, ports));
    this.#spawn("slurmctld", ["-D", "-f", at("slurm.conf")]);
    for (const name of names) this.#spawn("slurmd", ["-D", "-N", name, "-f", at("slurm.conf")]);
    await until(() => this.isIdle()).catch(() => {
      throw new Error(`Slurm does not start: ${this.#said()}`);
    });
  }

  #spawn(command: string, args: string[]): void {
    const daemon = spawn(command, args, { stdio: "ignore", env: this.env });
    daemon.on("error", () => undefined);
    this.#daemons.push(daemon);
  }

  #said(): string {
    return ["slurmctld.log", "slurmd.n1.log"].map((name) => readFileSync(join(this.#folder, name), "utf8").slice(-1000)).join("\n");
  }
}

function isDone(command: string, args: string[]): boolean {
  try {
    execFileSync(command, args, { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

/** Processes are found by the kernel's list and bound to nothing, so it runs where control groups are not ours. */
function configuration(folder: string, names: readonly string[], ports: readonly number[]): string {
  const facts = {
    ClusterName: "test",
    SlurmctldHost: `${hostname().split(".")[0]}(127.0.0.1)`,
    SlurmctldPort: ports.at(-1),
    SlurmUser: "root",
    SlurmdUser: "root",
    AuthType: "auth/munge",
    AuthInfo: `socket=${folder}/munge/socket`,
    StateSaveLocation: `${folder}/state`,
    SlurmdSpoolDir: `${folder}/spool.%n`,
    SlurmctldPidFile: `${folder}/slurmctld.pid`,
    SlurmdPidFile: `${folder}/slurmd.%n.pid`,
    SlurmctldLogFile: `${folder}/slurmctld.log`,
    SlurmdLogFile: `${folder}/slurmd.%n.log`,
    ProctrackType: "proctrack/linuxproc",
    TaskPlugin: "task/none",
    SwitchType: "switch/none",
    MpiDefault: "none",
    SelectType: "select/linear",
    JobAcctGatherType: "jobacct_gather/none",
    ReturnToService: 2,
    SlurmdParameters: "config_overrides",
  };
  const lines = Object.entries(facts).map(([name, value]) => `${name}=${value}`);
  const nodes = names.map((name, index) => `NodeName=${name} NodeHostname=${hostname()} NodeAddr=127.0.0.1 Port=${ports[index]} CPUs=2`);
  return [...lines, ...nodes, `PartitionName=all Nodes=${names.join(",")} Default=YES State=UP`, ""].join("\n");
}
