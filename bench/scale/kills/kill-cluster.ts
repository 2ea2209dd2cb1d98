/** A service, two nodes with Docker sandboxes, a practice engine, a Postgres and a trainer, and a way to kill each of them. */
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { readJson } from "../../../base/schema/read-json.ts";
import { Postgres } from "../../../test/fakes/machine/postgres.ts";
import { root } from "../../../test/fakes/processes/cli.ts";
import { quietPort } from "../../../test/quiet-port.ts";
import { containersOf, harnessesOf, killContainer } from "./containers.ts";
import { Supervised } from "./supervised.ts";

export const victims = ["service", "node", "postgres", "harness", "container", "engine", "trainer"] as const;
export type Victim = (typeof victims)[number];

export type KillClusterOptions = { place: string; groups: number; samples: number; concurrency: number };

/** What the trainer saved: each rollout as it took it, and the cursor behind the last one. */
export type Checkpoint = { cursor: string | null; taken: { rollout_id: string; attempt: number; tokens: string[] }[] };

export const nodeNames = ["a", "b"] as const;
const schema = "kills";

const task = `task_id: make-it
instruction: "Make done.txt."
limits: { agent_seconds: 120, grade_seconds: 60, memory_mb: 256, disk_mb: 64 }
grader:
  kind: script
  command: [sh, -c, "test -f done.txt && echo '{\\"reward\\":1}' || echo '{\\"reward\\":0}'"]
`;

export class KillCluster implements AsyncDisposable {
  readonly place: string;
  readonly postgres: Postgres;
  readonly parts: Record<"service" | "engine" | "trainer" | (typeof nodeNames)[number], Supervised>;
  readonly #scope: AsyncDisposableStack;
  readonly #mark: string;
  readonly #stop = new AbortController();
  /** Resolves when a server that was killed answers again. */
  #restart = Promise.resolve();

  private constructor(fields: Pick<KillCluster, "place" | "postgres" | "parts">, mark: string, scope: AsyncDisposableStack) {
    this.place = fields.place;
    this.postgres = fields.postgres;
    this.parts = fields.parts;
    this.#mark = mark;
    this.#scope = scope;
  }

  /** Everything is started; the trainer submits and takes. */
  static async start({ place, groups, samples, concurrency }: KillClusterOptions): Promise<KillCluster> {
    await using scope = new AsyncDisposableStack();
    for (const folder of ["task", "logs", "tmp"]) await mkdir(join(place, folder), { recursive: true });
    const mark = `agent-${createHash("sha256").update(place).digest("hex").slice(0, 12)}`;
    const enginePort = await quietPort();
    await writeFile(join(place, "task", "task.yaml"), task);
    await writeFile(join(place, "run.yaml"), await runFile(mark, enginePort));
    const postgres = scope.use(await Postgres.start());
    const start = (name: string, args: string[], env = {}): Supervised =>
      scope.use(
        new Supervised(name, { args, cwd: place, env: { TMPDIR: join(place, "tmp"), ...env } }, join(place, "logs", `${name}.log`)),
      );
    const alidade = [process.execPath, join(root, "cli/cli.ts")];
    const ledger = ["--trajectories", "shared", "-c", "run.yaml", "--json"];
    const port = String(await quietPort());
    const engine = start("engine", [process.execPath, join(root, "practice/server.ts"), "--port", String(enginePort), "--seed", "10"]);
    const service = start("service", [...alidade, "service", "task", "-p", port, "--ledger", postgres.url(schema), ...ledger]);
    // A node asks for the mark that the service leaves in the place of trajectories.
    while (!existsSync(join(place, "shared/ledger.id"))) await sleep(100);
    const own = ["node", "--join", postgres.url(schema), ...ledger, "--concurrency", String(concurrency)];
    const node = (name: string) => start(`node-${name}`, [...alidade, ...own, "--name", name, "-o", `runs-${name}`]);
    const trainer = start(
      "trainer",
      ["python3", join(import.meta.dirname, "trainer.py"), "runs/service", "checkpoint.json", String(groups), String(samples)],
      { PYTHONPATH: join(root, "clients/python"), PYTHONDONTWRITEBYTECODE: "1" },
    );
    return new KillCluster({ place, postgres, parts: { engine, service, a: node("a"), b: node("b"), trainer } }, mark, scope.move());
  }

  /** kill -9. What a supervisor starts again is dead for `downMs`. Returns what was killed; null: there is none to kill now. */
  async kill(victim: Victim, downMs: number, choose: <T>(among: readonly T[]) => T | null): Promise<string | null> {
    if (victim === "postgres") return this.#killPostgres(downMs);
    if (victim === "container") {
      const container = choose(await this.containers());
      return container !== null && (await killContainer(container)) ? container.slice(0, 12) : null;
    }
    if (victim === "harness") {
      const pid = choose(await harnessesOf(this.#mark));
      return pid !== null && killedNow(pid) ? `pid ${pid}` : null;
    }
    const part = this.parts[victim === "node" ? (choose(nodeNames) ?? "a") : victim];
    return part.kill(downMs) ? part.name : null;
  }

  /** Rows of a question; null while the database is down. */
  ask(sql: string, values: unknown[] = []) {
    return this.postgres.ask(schema, sql, values).catch(() => null);
  }

  /** Those of the ledger's sandboxes that are there, also dead ones. */
  async containers(all = false): Promise<string[]> {
    const ledger = await this.ledger();
    return ledger === null ? [] : containersOf(ledger, all);
  }

  /** Its id; null: no service has made it yet. */
  ledger(): Promise<string | null> {
    return readFile(join(this.place, "shared/ledger.id"), "utf8").catch(() => null);
  }

  async checkpoint(): Promise<Checkpoint> {
    const text = await readFile(join(this.place, "checkpoint.json"), "utf8").catch(() => null);
    return text === null ? { cursor: null, taken: [] } : (readJson(text) as Checkpoint);
  }

  /** Nodes and service end as they are told to; Postgres stays for the audit. */
  async stop(): Promise<void> {
    const { a, b, service } = this.parts;
    await Promise.all([a.stop(), b.stop()]);
    await service.stop();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#restart;
    await this.#scope.disposeAsync();
  }

  async #killPostgres(downMs: number): Promise<string | null> {
    if (this.postgres.pid === null) return null;
    await this.postgres.kill();
    this.#restart = this.#startPostgres(downMs, this.#stop.signal);
    return "postgres";
  }

  /** The memory of the dead server is in use until all of its processes are gone: a supervisor tries again. */
  async #startPostgres(downMs: number, signal: AbortSignal): Promise<void> {
    await sleep(downMs, undefined, { signal }).catch(() => undefined);
    for (let isUp = false; !isUp && !signal.aborted; )
      isUp = await this.postgres.startServer().then(
        () => true,
        () => sleep(200, false, { signal }).catch(() => false),
      );
  }
}

function killedNow(pid: number): boolean {
  try {
    return process.kill(pid, "SIGKILL");
  } catch {
    return false;
  }
}

/** `mark`: a word in the command line of its harnesses, and of no other process. */
async function runFile(mark: string, enginePort: number): Promise<string> {
  const script = `# ${mark}\n${await readFile(join(import.meta.dirname, "agent.py"), "utf8")}`;
  const command = JSON.stringify(["python3", "-c", script, "{instruction}"]);
  return `engine: { url: "http://127.0.0.1:${enginePort}" }\nharness: { command: ${command}, dialects: [openai-chat] }\nsandbox: docker\n`;
}
