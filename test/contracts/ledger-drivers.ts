/** Every ledger driver, as its contract suites open it. */
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import { type Allocations, type Ledger, PostgresLedger, SqliteLedger } from "../../service/ledger/index.ts";
import { PostgresPlace, postgresFor } from "../fakes/machine/postgres.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";
import { type Need, need } from "../needs.ts";

/**
 * A ledger at a place; another `open` there is a process that begins after the first one was killed. `atOnce`: rollouts that end in one
 * transaction. `pass`: of the leases' time. `tell`: one statement of the test's own.
 */
export type LedgerPlace = {
  open(atOnce?: number, allocations?: Allocations): Promise<Ledger>;
  pass(seconds: number): Promise<void>;
  tell(sql: string): Promise<void>;
};

/** `searches`: how many orders of events are tried. Each asks a server some thousand times. */
export type LedgerDriver = { name: string; needs?: Need; searches: number; place: () => LedgerPlace };

/** Returns the `test` of one driver: titles begin with the driver's name, and a test without what the driver needs is left out. */
export function ledgerTest({ name, needs }: Pick<LedgerDriver, "name" | "needs">) {
  return (title: string, does: (t: TestContext) => Promise<void>, options: object = {}) =>
    test(`${name}: ${title}`, options, async (t) => {
      if (needs === undefined || (await need(t, needs))) await does(t);
    });
}

/** Opens the ledger at this place until the test ends. */
export async function openFor(t: TestContext, at: LedgerPlace, atOnce?: number): Promise<Ledger> {
  const ledger = await at.open(atOnce);
  t.after(() => ledger[Symbol.asyncDispose]());
  return ledger;
}

/** For one test file, whose end takes the places away. */
export function ledgerDrivers(): LedgerDriver[] {
  const scratch = scratchFolder("ledger");
  let files = 0;

  const postgres = postgresFor();

  return [
    {
      name: "sqlite",
      searches: 20,
      place: () => {
        const path = join(scratch, `${files++}.sqlite`);
        let time = 1_000_000;
        const pass = async (seconds: number) => {
          time += seconds * 1000;
        };
        const tell = async (sql: string) => {
          using file = new DatabaseSync(path);
          file.exec(sql);
        };
        const open: LedgerPlace["open"] = async (atOnce, allocations) =>
          SqliteLedger.open(path, { now: () => time, atOnce, ...(allocations && { allocations }) });
        return { open, pass, tell };
      },
    },
    {
      name: "postgres",
      needs: "postgres",
      searches: 8,
      place: () => {
        const at = new PostgresPlace(postgres, `place${files++}`);
        return {
          open: async (atOnce, allocations) =>
            PostgresLedger.open(await at.url(), "service", { atOnce, ...(allocations && { allocations }) }),
          pass: (seconds) => at.passLeases(seconds),
          tell: async (sql) => void (await at.ask(sql)),
        };
      },
    },
  ];
}
