/**
 * A real Postgres of a test file's own: a cluster in a folder, on a socket in it, as a user who is not root. It may be killed
 * and started again. Debian's package is enough; its own cluster need not run.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, globSync } from "node:fs";
import { chown, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after } from "node:test";
import { promisify } from "node:util";
import type { DatabaseRow } from "../../../service/ledger/database-row.ts";
import { loadPg } from "../../../service/ledger/postgres/connection/pg-library.ts";
import { until } from "./until.ts";

/** Postgres refuses to run as root: there its user is the one of uid 65534. */
export const unprivileged = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {};

/** The folder of its programs: Debian's of the newest version, or that of the path. */
export function postgresPrograms(): string | null {
  const debian = globSync("/usr/lib/postgresql/*/bin/initdb").toSorted((a, b) => a.localeCompare(b, "en", { numeric: true }));
  const onPath = (process.env.PATH ?? "").split(":").map((folder) => join(folder, "initdb"));
  const found = debian.at(-1) ?? onPath.find((path) => existsSync(path));
  return found === undefined ? null : dirname(found);
}

export async function postgresMissing(): Promise<string | null> {
  return postgresPrograms() === null ? "no initdb of Postgres below /usr/lib/postgresql or on the path" : null;
}

export class Postgres implements AsyncDisposable {
  readonly folder: string;
  readonly #programs: string;
  readonly #settings: Record<string, string>;
  #server: ChildProcess | null = null;

  /** `settings`: of the server, beside the ones here. */
  static async start(settings: Record<string, string> = {}): Promise<Postgres> {
    const found = postgresPrograms();
    if (found === null) throw new Error("no Postgres on this machine");
    const folder = await mkdtemp(join(tmpdir(), "alidade-pg-"));
    if (unprivileged.uid !== undefined) await chown(folder, unprivileged.uid, unprivileged.gid);
    const options = ["-D", join(folder, "data"), "-U", "alidade", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"];
    await promisify(execFile)(join(found, "initdb"), options, { ...unprivileged, cwd: folder });
    const postgres = new Postgres(folder, found, settings);
    await postgres.startServer();
    return postgres;
  }

  private constructor(folder: string, programs: string, settings: Record<string, string>) {
    this.folder = folder;
    this.#programs = programs;
    this.#settings = settings;
  }

  /** The postmaster's process; null while it is down. */
  get pid(): number | null {
    return this.#server?.pid ?? null;
  }

  url(schema: string): string {
    return `postgres:///postgres?host=${encodeURIComponent(this.folder)}&user=alidade&schema=${schema}`;
  }

  /** One question of the test's own, in the schema. */
  async ask(schema: string, sql: string, values: unknown[] = []): Promise<DatabaseRow[]> {
    const { Client } = await loadPg();
    const client = new Client({ host: this.folder, user: "alidade", database: "postgres", options: `-c search_path=${schema}` });
    client.on("error", () => undefined);
    await client.connect();
    try {
      return (await client.query(sql, values)).rows;
    } finally {
      await client.end();
    }
  }

  /** Until it answers. Memory of a server that was killed is still in use for a moment: it is tried again. */
  async startServer(): Promise<void> {
    await until(async () => {
      if (this.#server === null || this.#server.exitCode !== null || this.#server.signalCode !== null) this.#server = this.#spawn();
      return this.ask("public", "SELECT 1").then(
        () => true,
        () => false,
      );
    });
  }

  /** The postmaster ends at once, its processes when they see that it is gone. */
  async kill(): Promise<void> {
    const server = this.#server;
    this.#server = null;
    if (server === null || server.exitCode !== null || server.signalCode !== null) return;
    const ended = once(server, "exit");
    server.kill("SIGKILL");
    await ended;
  }

  /** SIGQUIT: all of its processes are gone when it is. */
  async [Symbol.asyncDispose](): Promise<void> {
    const server = this.#server;
    if (server !== null && server.exitCode === null && server.signalCode === null) {
      const ended = once(server, "exit");
      server.kill("SIGQUIT");
      await ended;
    }
    await rm(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }

  /** A crash of the server is survived without fsync, one of the machine is no part of a test. */
  #spawn(): ChildProcess {
    const settings = { listen_addresses: "", unix_socket_directories: this.folder, fsync: "off", max_connections: "200" };
    const args = Object.entries({ ...settings, ...this.#settings }).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    return spawn(join(this.#programs, "postgres"), ["-D", join(this.folder, "data"), ...args], {
      ...unprivileged,
      cwd: this.folder,
      stdio: "ignore",
    });
  }
}

/** One for a test file: it starts with the first question, and ends behind the last test. `settings`: of the server. */
export function postgresFor(settings: Record<string, string> = {}): () => Promise<Postgres> {
  let started: Promise<Postgres> | null = null;
  after(async () => {
    await (await started)?.[Symbol.asyncDispose]();
  });
  return () => {
    started ??= Postgres.start(settings);
    return started;
  };
}

/** A schema of its own. */
export class PostgresPlace {
  readonly schema: string;
  readonly #postgres: () => Promise<Postgres>;

  constructor(postgres: () => Promise<Postgres>, schema: string) {
    this.#postgres = postgres;
    this.schema = schema;
  }

  async url(): Promise<string> {
    return (await this.#postgres()).url(this.schema);
  }

  async ask(sql: string, values: unknown[] = []): Promise<DatabaseRow[]> {
    return (await this.#postgres()).ask(this.schema, sql, values);
  }

  /** As if this time had passed for all leases, under the eyes of a service. */
  async passLeases(seconds: number): Promise<void> {
    await this.ask("UPDATE nodes SET until = until - $1", [seconds * 1000]);
    await this.ask("UPDATE groups SET cut_at = cut_at - $1", [seconds * 1000]);
    await this.ask("UPDATE rollouts SET since = since - $1 WHERE shuns IS NOT NULL", [seconds * 1000]);
    await this.ask("UPDATE results SET finished = finished - $1", [seconds * 1000]);
    await this.ask("UPDATE superseded SET noted = noted - $1", [seconds * 1000]);
    await this.ask("UPDATE parked SET since = since - $1", [seconds * 1000]);
    await this.ask("UPDATE watch SET looked = (extract(epoch FROM clock_timestamp()) * 1000)::bigint");
  }
}
