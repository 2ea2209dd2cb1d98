/** `postgres://user@host:5432/database?schema=alidade`: one ledger is one schema. */
import { AlidadeError } from "../../../../base/errors.ts";
import type { PgOptions } from "./pg-library.ts";

/** A statement that takes longer waits for a machine that is gone. Half a lease: a beat that hangs must not cost the lease. */
const longestStatementMs = 15_000;

/** An open transaction holds the stream of results back, so one of ours whose client is stuck is ended. */
const longestIdleMs = 60_000;

export type PostgresAddress = {
  options: PgOptions;
  schema: string;
  /** Host and database, without user and password: for messages. */
  text: string;
};

/** Throws `config_invalid` naming what does not fit; the message holds no password. */
export function postgresAddress(url: string): PostgresAddress {
  const refuse = (message: string) => new AlidadeError("config_invalid", message, { param: "ledger" });
  const parsed = URL.canParse(url) ? new URL(url) : null;
  if (parsed === null || !/^postgres(?:ql)?:$/.test(parsed.protocol))
    throw refuse("the ledger's URL is none of Postgres: give postgres://user@host:5432/database");
  const schema = parsed.searchParams.get("schema") ?? "alidade";
  if (!/^[a-z_][a-z0-9_]{0,39}$/.test(schema))
    throw refuse(`the schema "${schema.slice(0, 60)}" of the ledger's URL wants lower-case letters, digits and underscores, at most 40`);
  if (parsed.searchParams.has("options"))
    throw refuse("the ledger's URL has `options`, which are ours to set: leave them out, and name the schema by ?schema=");
  parsed.searchParams.delete("schema");
  const settings = {
    search_path: schema,
    // Planning takes longer than the work, so each statement is planned once, for any values: an index serves each of them. A
    // plan that is made while tables are empty would otherwise read all of a table for ever.
    plan_cache_mode: "force_generic_plan",
    enable_seqscan: "off",
    jit: "off",
    idle_in_transaction_session_timeout: longestIdleMs,
    statement_timeout: longestStatementMs,
  };
  return {
    options: {
      connectionString: parsed.href,
      application_name: "alidade",
      options: Object.entries(settings)
        .map(([name, value]) => `-c ${name}=${value}`)
        .join(" "),
      // The server may be gone without a word; then its own limit never comes.
      query_timeout: longestStatementMs + 1_000,
      connectionTimeoutMillis: 10_000,
      keepAlive: true,
    },
    schema,
    text: `postgres://${parsed.host || (parsed.searchParams.get("host") ?? "localhost")}${parsed.pathname}`,
  };
}
