/**
 * A pool of connections as the ledger uses it: transactions that are carried out whole or not at all. Each runs at READ
 * COMMITTED; what must not change meanwhile is locked by its statements, and a deadlock is begun again.
 */
import { createHash } from "node:crypto";
import { AlidadeError, messageOf } from "../../../../base/errors.ts";
import { untilAborted } from "../../../../base/host/until-aborted.ts";
import type { Allocations } from "../../allocation/index.ts";
import type { DatabaseRow } from "../../database-row.ts";
import type { PostgresAddress } from "./address.ts";
import type { PgLibrary, PgPool, PgPoolClient } from "./pg-library.ts";

export type Value = string | number | boolean | null | readonly (string | number | null)[];

/** The questions of one transaction, or of one connection. */
export type Transaction = {
  /** By which it shares a set's samples. */
  readonly allocations: Allocations;
  all(sql: string, ...values: Value[]): Promise<DatabaseRow[]>;
  get(sql: string, ...values: Value[]): Promise<DatabaseRow | undefined>;
  /** Returns the number of rows that it changed. */
  run(sql: string, ...values: Value[]): Promise<number>;
};

/**
 * A hundred nodes must fit into one server. Of a node's two, one may wait for its turn to claim; the other one renews the lease and
 * finishes, by statements of a millisecond. What trainers submit and read takes longer.
 */
const connections = { service: 4, node: 2 };

/** The process that asks. */
export type PoolUser = keyof typeof connections;

/** A new one costs the server 20 ms, for it plans each statement anew. Milliseconds that one is kept without a question. */
const keptMs = 600_000;

/** Deadlock, failure of serialization: the work was undone whole, and is done again. */
const undone = new Set(["40P01", "40001"]);
const mostTries = 5;

export class PostgresDatabase implements AsyncDisposable {
  readonly #pool: PgPool;
  readonly #place: string;
  readonly #allocations: Allocations;

  constructor(pg: PgLibrary, { options, text }: PostgresAddress, user: PoolUser, allocations: Allocations) {
    this.#place = text;
    this.#allocations = allocations;
    this.#pool = new pg.Pool({ ...options, max: connections[user], idleTimeoutMillis: keptMs });
    // A server that dies is said by an event of each connection, also of those in use: without a listener it ends this process.
    const ignore = (): void => undefined;
    this.#pool.on("error", ignore);
    this.#pool.on("connect", (client: PgPoolClient) => client.on("error", ignore));
  }

  /** All of it or nothing. Throws `store_full`, `store_error`; where a commit was not answered it may stand all the same. */
  transaction<T>(work: (db: Transaction) => Promise<T>): Promise<T> {
    return this.#tried(async (client) => {
      await client.query("BEGIN");
      const result = await work(transactionOn(client, this.#allocations));
      await client.query("COMMIT");
      return result;
    });
  }

  /**
   * Each statement sees what is committed when it begins, and is committed by itself. It spares the server two questions, and
   * holds no lock for the way between two machines. Throws as `transaction`, and the signal's reason: the connection is closed
   * then, because a statement cannot be taken back, and another one may use its place at once.
   */
  statements<T>(work: (db: Transaction) => Promise<T>, signal?: AbortSignal): Promise<T> {
    return this.#tried((client) => work(transactionOn(client, this.#allocations)), signal);
  }

  async #tried<T>(work: (client: PgPoolClient) => Promise<T>, signal?: AbortSignal): Promise<T> {
    for (let tries = 1; ; tries++) {
      signal?.throwIfAborted();
      try {
        return await this.#once(work, signal);
      } catch (error) {
        signal?.throwIfAborted();
        if (tries === mostTries || !undone.has(stateOf(error))) throw this.#asOurs(error);
      }
    }
  }

  async #once<T>(work: (client: PgPoolClient) => Promise<T>, signal?: AbortSignal): Promise<T> {
    const client = await this.#client(signal);
    const close = (): void => void client.end().catch(() => undefined);
    signal?.addEventListener("abort", close, { once: true });
    let isUsable = false;
    try {
      const result = await work(client);
      isUsable = true;
      return result;
    } catch (error) {
      // A connection that broke or hangs answers no ROLLBACK; the server undoes the work when it is closed.
      if (error instanceof AlidadeError || stateOf(error) !== "")
        isUsable = await client.query("ROLLBACK").then(
          () => true,
          () => false,
        );
      throw error;
    } finally {
      signal?.removeEventListener("abort", close);
      client.release(!isUsable || signal?.aborted);
    }
  }

  /** A connection that comes after its caller has gone is given back to the pool. */
  async #client(signal?: AbortSignal): Promise<PgPoolClient> {
    const coming = this.#pool.connect();
    if (signal === undefined) return coming;
    return untilAborted(coming, signal).catch((error: unknown) => {
      void coming.then(
        (client) => client.release(),
        () => undefined,
      );
      throw error;
    });
  }

  #asOurs(error: unknown): AlidadeError {
    if (error instanceof AlidadeError) return error;
    const state = stateOf(error);
    if (state === badText)
      return new AlidadeError("request_invalid", "a name holds the character NUL, which Postgres cannot keep: leave it out", {
        cause: error,
      });
    if (noPassword.test(messageOf(error)))
      return new AlidadeError(
        "config_invalid",
        `the ledger at ${this.#place} wants a password: give it in PGPASSWORD, or in the file that PGPASSFILE names, else ~/.pgpass`,
        { cause: error, param: "ledger" },
      );
    return state === diskFull
      ? new AlidadeError("store_full", `no space left for the ledger at ${this.#place}: free some space there`, { cause: error })
      : new AlidadeError("store_error", `the ledger at ${this.#place} does not answer: ${messageOf(error)}`, { cause: error });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#pool.end();
  }
}

/** How node-postgres says it: it has none, and the server asks for one. */
const noPassword = /client password must be a string/;

/** SQLSTATE of a character that the server's encoding does not have, and of a full disk. */
const badText = "22021";
const diskFull = "53100";

/** The server's SQLSTATE; empty where the error is not the server's. */
function stateOf(error: unknown): string {
  const { code, severity } = error as { code?: unknown; severity?: unknown };
  return typeof code === "string" && typeof severity === "string" ? code : "";
}

function transactionOn(client: PgPoolClient, allocations: Allocations): Transaction {
  const ask = (text: string, values: Value[]) => client.query({ name: nameOf(text), text, values });
  const all: Transaction["all"] = async (sql, ...values) => (await ask(sql, values)).rows;
  return {
    allocations,
    all,
    get: async (sql, ...values) => (await all(sql, ...values))[0],
    run: async (sql, ...values) => (await ask(sql, values)).rowCount ?? 0,
  };
}

const names = new Map<string, string>();

/** The server parses and plans a text once for each connection. There are some dozens of them. */
function nameOf(text: string): string {
  const known = names.get(text) ?? createHash("sha256").update(text).digest("hex").slice(0, 20);
  names.set(text, known);
  return known;
}
