/** A simulated cluster: a ledger, a service over it, and nodes in some processes; and a trainer that reads by its cursor. */
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ResultRow } from "../../service/ledger/index.ts";
import { Postgres } from "../../test/fakes/machine/postgres.ts";
import { Child } from "../child.ts";
import { cpuSecondsWithChildren } from "../measure.ts";
import type { HostFigures, HostPlace, SimulatedNodes } from "./host.ts";
import type { ProcessMemory } from "./process-memory.ts";

export type ClusterSize = {
  nodes: number;
  hosts: number;
  slots: number;
  durations: SimulatedNodes["durations"];
  kind: "postgres" | "sqlite";
};

const token = "bench";
/** A node has a connection that listens and some that ask. */
const connections = 8;

export class Cluster implements AsyncDisposable {
  readonly postgres: Postgres | null;
  readonly service: Child;
  readonly hosts: Child[];
  readonly url: string;
  readonly #scope: AsyncDisposableStack;

  private constructor(parts: Pick<Cluster, "postgres" | "service" | "hosts" | "url">, scope: AsyncDisposableStack) {
    this.postgres = parts.postgres;
    this.service = parts.service;
    this.hosts = parts.hosts;
    this.url = parts.url;
    this.#scope = scope;
  }

  /** All nodes have joined. */
  static async start({ nodes, hosts: count, slots, durations, kind }: ClusterSize): Promise<Cluster> {
    await using scope = new AsyncDisposableStack();
    const folder = await mkdtemp(join(tmpdir(), "alidade-scale-"));
    scope.defer(() => rm(folder, { recursive: true }));
    const settings = {
      max_connections: String(nodes * connections + 50),
      shared_buffers: "256MB",
    };
    const postgres = kind === "postgres" ? scope.use(await Postgres.start(settings)) : null;
    const open = async (name: string): Promise<Child> => {
      const child = scope.use(new Child(join(import.meta.dirname, "host.ts")));
      const own = join(folder, name);
      await mkdir(own);
      await child.ask<void>("open", { ledger: postgres?.url("bench") ?? "sqlite", folder: own, token } satisfies HostPlace);
      return child;
    };
    const service = await open("service");
    const url = await service.ask<string>("serve");
    const hosts = postgres === null ? [service] : await Promise.all(Array.from({ length: count }, (_, at) => open(`host${at}`)));
    const namesOf = (host: number) => Array.from({ length: nodes }, (_, at) => `node${at}`).filter((_, at) => at % hosts.length === host);
    await Promise.all(hosts.map((host, at) => host.ask("startNodes", { names: namesOf(at), slots, durations } satisfies SimulatedNodes)));
    const cluster = new Cluster({ postgres, service, hosts, url }, scope.move());
    while ((await cluster.ask<{ nodes: unknown[] }>("GET", "/nodes")).nodes.length < nodes)
      await new Promise((wake) => setTimeout(wake, 50));
    return cluster;
  }

  async ask<T>(method: string, path: string, body?: unknown): Promise<T> {
    const text = await this.text(method, path, body);
    return (text === "" ? null : JSON.parse(text)) as T;
  }

  async text(method: string, path: string, body?: unknown): Promise<string> {
    const response = await fetch(this.url + path, {
      method,
      headers: { authorization: `Bearer ${token}` },
      ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${text}`);
    return text;
  }

  /** The set's id. */
  async submit(key: string, groups: number, samples: number): Promise<string> {
    const { set_id } = await this.ask<{ set_id: string }>("PUT", `/sets/${key}`, { samples });
    const task = { task_id: "t", instruction: "Do it.", grader: { kind: "script", command: ["true"] } };
    const lines = Array.from({ length: groups }, (_, at) => JSON.stringify({ group_key: `g${at}`, task }));
    await this.ask("POST", `/sets/${set_id}/groups`, lines.join("\n"));
    return set_id;
  }

  /** A trainer: each result of the set, as it comes, until there are so many. */
  async *results(set: string, count: number): AsyncGenerator<ResultRow> {
    let after: string | null = null;
    for (let read = 0; read < count; ) {
      const query = `limit=500&wait=30${after === null ? "" : `&after=${after}`}`;
      const response = await fetch(`${this.url}/sets/${set}/results?${query}`, { headers: { authorization: `Bearer ${token}` } });
      for (const line of (await response.text()).split("\n").filter(Boolean)) {
        const { cursor, result } = JSON.parse(line) as { cursor: string; result: ResultRow };
        after = cursor;
        read += 1;
        yield result;
      }
    }
  }

  /** CPU seconds so far. `ledger`: of the database's server, 0 where there is none. */
  async cpu(): Promise<{ ledger: number; service: number; nodes: number }> {
    const pid = this.postgres?.pid;
    const nodes = await Promise.all(this.hosts.map((host) => host.ask<HostFigures>("figures")));
    return {
      ledger: pid == null ? 0 : (cpuSecondsWithChildren(pid) ?? 0),
      service: (await this.service.ask<HostFigures>("figures")).cpuSeconds,
      nodes: nodes.reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0),
    };
  }

  /** Collects the service's garbage. */
  serviceMemory(): Promise<ProcessMemory> {
    return this.service.ask<ProcessMemory>("memory");
  }

  /** Attempts that nodes began, and what they had to say. */
  async heard(): Promise<Pick<HostFigures, "begun" | "notes">> {
    const hosts = await Promise.all(this.hosts.map((host) => host.ask<HostFigures>("figures")));
    const notes: Record<string, number> = {};
    for (const host of hosts) for (const [text, times] of Object.entries(host.notes)) notes[text] = (notes[text] ?? 0) + times;
    return { begun: hosts.reduce((sum, { begun }) => sum + begun, 0), notes };
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#scope.disposeAsync();
  }
}
