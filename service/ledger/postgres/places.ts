/** Places at engines, of nodes with their leases. */
import { type EnginePlaces, type EngineUse, grantPlaces } from "../engine-places.ts";
import { toNodePlaces } from "../from-rows.ts";
import type { Lease } from "../ledger.ts";
import type { Transaction } from "./connection/postgres-database.ts";
import { lock } from "./tables.ts";

/** Inside a transaction. One node at a time, so that none is given what another one was given just now. */
export async function grant(db: Transaction, { node, epoch }: Lease, uses: readonly EngineUse[]): Promise<EnginePlaces[]> {
  await lock(db, "places");
  const others = await db.all("SELECT name, engines FROM nodes WHERE name <> $1 AND engines IS NOT NULL", node);
  const granted = grantPlaces(node, uses, others.map(toNodePlaces));
  const kept = await db.run("UPDATE nodes SET engines = $3 WHERE name = $1 AND epoch = $2", node, epoch, JSON.stringify(granted));
  return kept === 1 ? granted : [];
}
