/** Every ledger driver, as its contract suites open it. */
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type Allocations, type Ledger, PostgresLedger, SqliteLedger } from "../../service/ledger/index.ts";
import { PostgresPlace, postgresFor } from "../fakes/machine/postgres.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";
import type { Need } from "../needs.ts";

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
