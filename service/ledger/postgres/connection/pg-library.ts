/** node-postgres, which the user installs where a ledger is named by `postgres://`: an optional peer dependency. */
import { installCommand } from "../../../../base/host/install-command.ts";
import { loadOptional } from "../../../../base/host/optional-package.ts";
import type { DatabaseRow } from "../../database-row.ts";

/** The release that the tests run with. */
export const pgPackage = "pg@8.23.1";

/** The little of pg that is used. */
export type PgLibrary = { Pool: new (options: PgOptions) => PgPool; Client: new (options: PgOptions) => PgClient };
export type PgOptions = Record<string, string | number | boolean>;
export type PgResult = { rows: DatabaseRow[]; rowCount: number | null };
export type PgClient = {
  connect(): Promise<unknown>;
  query(sql: string, values?: unknown[]): Promise<PgResult>;
  /** Parsed once for each connection, by its name. */
  query(statement: { name: string; text: string; values: unknown[] }): Promise<PgResult>;
  end(): Promise<void>;
  on(event: string, listener: (what: never) => void): unknown;
};
export type PgPool = {
  connect(): Promise<PgPoolClient>;
  end(): Promise<void>;
  on(event: "error" | "connect", listener: (what: never) => void): unknown;
};
export type PgPoolClient = PgClient & { release(destroy?: boolean): void };

/** Throws `config_invalid` with the command that installs it. `from`: where the user stands. */
export async function loadPg(from: string = process.cwd()): Promise<PgLibrary> {
  const missing = `a ledger in Postgres needs the package pg, which is not installed here: ${installCommand([pgPackage])}`;
  const { default: library } = await loadOptional("pg", { missing, param: "ledger", from });
  return library as PgLibrary;
}
