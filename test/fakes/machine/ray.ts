/** A real Ray cluster of a test's own: `ray start` for each name, all on this machine, in a folder. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { globSync, readFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { rayPrograms } from "../../interop/ray/place.ts";
import { quietPort } from "../../quiet-port.ts";

/** Ray's least. Nothing is put there. */
const objectStoreBytes = 80_000_000;
/** On a machine with other work all of it is slow, and a machine that answers late is no dead one. */
const patient = {
  RAY_enable_worker_prestart: "0",
  RAY_memory_monitor_refresh_ms: "0",
  RAY_agent_register_timeout_ms: "300000",
  RAY_health_check_failure_threshold: "100",
  RAY_worker_register_timeout_seconds: "300",
  RAY_gcs_server_request_timeout_seconds: "300",
};

export class Ray implements AsyncDisposable {
  readonly #folder: string;
  readonly #env: Record<string, string>;
  readonly #machines: ChildProcess[] = [];

  /** `env`: of its machines. */
  private constructor(folder: string, env: Record<string, string>) {
    this.#folder = folder;
    // Its token would else be kept in the home of this user.
    const token = { RAY_AUTH_MODE: "token", RAY_AUTH_TOKEN: randomBytes(32).toString("hex") };
    this.#env = { ...(process.env as Record<string, string>), ...env, ...token, ...patient };
  }

  static async start(folder: string, names: readonly string[], env: Record<string, string>): Promise<Ray> {
    const ray = new Ray(folder, env);
    try {
      await ray.#start(names);
      return ray;
    } catch (error) {
      await ray[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** What a program of Python says that asks the cluster. Throws what it said. */
  async python(...args: string[]): Promise<string> {
    const { stdout } = await promisify(execFile)(join(rayPrograms(), "python"), args, { env: this.#env, cwd: this.#folder });
    return stdout.trim();
  }

  /** What actors and their processes said. */
  logged(): string {
    const files = globSync(join(this.#folder, "ray/session_latest/logs/worker-*.{out,err}"));
    return files.map(readOrEmpty).join("\n");
  }

  /** Ray's processes are ended by the kernel with the one that started them. */
  async [Symbol.asyncDispose](): Promise<void> {
    for (const machine of this.#machines.reverse()) {
      if (machine.exitCode !== null || machine.signalCode !== null) continue;
      const ended = once(machine, "exit");
      machine.kill("SIGKILL");
      await ended;
    }
  }

  async #start([head, ...others]: readonly string[]): Promise<void> {
    const port = await quietPort();
    const dashboard = ["--no-monitor", "--include-dashboard=false", "--temp-dir", join(this.#folder, "ray")];
    await this.#machine(["--head", "--port", String(port), ...dashboard, "--node-name", head ?? ""]);
    this.#env.RAY_ADDRESS = `127.0.0.1:${port}`;
    for (const name of others) await this.#machine(["--address", `127.0.0.1:${port}`, "--node-name", name]);
  }

  /** Until it runs. Ray gives its own processes seconds to come up, which are too few on a machine with other work: it is tried again. */
  async #machine(args: string[]): Promise<void> {
    for (let left = 5; ; left--) {
      const said = await this.#tried(args);
      if (said === null) return;
      if (left === 0 || !said.includes("timed out during startup")) throw new Error(`ray start ${args.join(" ")}: ${said.slice(-2000)}`);
    }
  }

  /** null: it runs. Otherwise it ended, and this is what it said. */
  async #tried(args: string[]): Promise<string | null> {
    // Ports of workers are any free ones: two machines here would else have the same.
    const small = ["--num-cpus=1", `--object-store-memory=${objectStoreBytes}`, "--min-worker-port=0", "--max-worker-port=0"];
    const quiet = ["--disable-usage-stats", "--include-log-monitor=false", "--dashboard-agent-listen-port=0", "--log-color=false"];
    // First in line, as a session that the kernel prefers: Ray ends when its agents need more than 15 s to start.
    const first = 'echo -15 2>/dev/null >/proc/self/autogroup; exec "$@"';
    const start = [join(rayPrograms(), "ray"), "start", "--block", ...args, ...small, ...quiet];
    const machine = spawn("nice", ["-n", "-15", "sh", "-c", first, "sh", ...start], {
      detached: true,
      env: { ...this.#env, PATH: `${rayPrograms()}${delimiter}${this.#env.PATH}` },
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#machines.push(machine);
    let said = "";
    return new Promise((resolve, reject) => {
      for (const stream of [machine.stdout, machine.stderr])
        stream.setEncoding("utf8").on("data", (text: string) => {
          said += text;
          if (said.includes("Ray runtime started")) resolve(null);
        });
      machine.once("error", reject).once("close", () => resolve(said));
    });
  }
}

/** Ray renames a worker's file when an actor takes the worker. */
function readOrEmpty(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
