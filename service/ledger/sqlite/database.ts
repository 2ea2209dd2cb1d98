/** node:sqlite as the ledger uses it: prepared statements by their text, and transactions. */
import { DatabaseSync, type SQLInputValue, type StatementSync } from "node:sqlite";
import { AlidadeError, messageOf } from "../../../base/errors.ts";
import type { Allocations } from "../allocation/index.ts";

export type TableRow = Record<string, string | number | null>;

export class Database implements Disposable {
  readonly #file: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();

  /** By which its transactions share a set's samples. */
  readonly allocations: Allocations;

  /** Each commit is on the disk when it returns: a finished rollout is worth minutes of a GPU, an fsync milliseconds. */
  constructor(path: string, allocations: Allocations) {
    this.allocations = allocations;
    this.#file = new DatabaseSync(path);
    this.#file.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;");
  }

  exec(sql: string): void {
    this.#file.exec(sql);
  }

  all(sql: string, ...values: SQLInputValue[]): TableRow[] {
    return this.#statement(sql).all(...values) as TableRow[];
  }

  get(sql: string, ...values: SQLInputValue[]): TableRow | undefined {
    return this.#statement(sql).get(...values) as TableRow | undefined;
  }

  /** Returns the number of rows that it changed. */
  run(sql: string, ...values: SQLInputValue[]): number {
    return Number(this.#statement(sql).run(...values).changes);
  }

  /** Writes all of it or nothing. Throws `store_full` if the disk is full; nothing is written then, and the caller may try again. */
  transaction<T>(work: () => T): T {
    try {
      this.#file.exec("BEGIN IMMEDIATE");
      const result = work();
      this.#file.exec("COMMIT");
      return result;
    } catch (error) {
      if (this.#file.isTransaction) this.#file.exec("ROLLBACK");
      throw asStoreError(error);
    }
  }

  #statement(sql: string): StatementSync {
    const known = this.#statements.get(sql) ?? this.#file.prepare(sql);
    this.#statements.set(sql, known);
    return known;
  }

  [Symbol.dispose](): void {
    this.#statements.clear();
    this.#file.close();
  }
}

/** SQLITE_FULL; its codes have further detail in the higher bits. */
const full = 13;

function asStoreError(error: unknown): unknown {
  const code = (error as { errcode?: number }).errcode;
  if (code === undefined) return error;
  return (code & 0xff) === full
    ? new AlidadeError("store_full", "no space left for the ledger: free some space; nothing recorded so far is lost", { cause: error })
    : new AlidadeError("store_error", `the ledger cannot be written: ${messageOf(error)}`, { cause: error });
}
