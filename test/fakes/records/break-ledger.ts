/** Takes a table away from a ledger that is open elsewhere: each question about nodes fails from then on. */
import { DatabaseSync } from "node:sqlite";

export function breakLedger(path: string): void {
  using file = new DatabaseSync(path);
  file.exec("PRAGMA foreign_keys = OFF; DROP TABLE nodes");
}
