/**
 * Rollouts that are to end as cancelled: what is open of a set, of a group, or of a group's rollouts that are made later. From the
 * commit of such an order on none of them is claimed. They are ended in parts, a transaction each (`endSome`), so that no transaction
 * holds results back and no service waits. The order stays until all are over: what a process leaves that dies is ended by another.
 */

import type { EndOrder } from "../../ledger.ts";
import type { Transaction } from "../connection/postgres-database.ts";
import { ownXid } from "../tables.ts";

export async function orderEnding(db: Transaction, { set, key, isRest, reason }: EndOrder): Promise<void> {
  const ofWholeSet = "UPDATE endings SET upto = nextval('places') WHERE set_id = $1 AND group_key IS NULL";
  if (key === null && (await db.run(ofWholeSet, set)) > 0) return;
  await db.run(
    "INSERT INTO endings (set_id, group_key, is_rest, reason, upto) VALUES ($1, $2, $3, $4, nextval('places'))",
    set,
    key,
    isRest,
    reason,
  );
}

/** The numbers of the first of all orders, or of those of one set. */
export async function endingsOf(db: Transaction, set: string | null): Promise<number[]> {
  const orders = await db.all("SELECT number FROM endings WHERE $1::text IS NULL OR set_id = $1 ORDER BY number LIMIT 100", set);
  return orders.map(({ number }) => Number(number));
}

/** In SQL: the group is to end, or the rest of it is. */
export const isEndingGroup =
  "EXISTS (SELECT FROM endings WHERE endings.set_id = $1 AND (endings.group_key IS NULL OR endings.group_key = $2))";

/** In SQL: the rollout is to end. */
export const isToEnd = `EXISTS (
      SELECT FROM endings WHERE endings.set_id = rollouts.set_id AND (endings.group_key IS NULL OR endings.group_key = rollouts.group_key)
      AND (rollouts.state = 'later' OR NOT endings.is_rest) AND rollouts.place <= endings.upto
    )`;

/** A group is whole, once, when all that is wanted of it is over; `isWhole` says so in SQL. */
export function whole(isWhole: string): string {
  return `whole_xid = CASE WHEN whole_xid IS NULL AND ${isWhole} THEN ${ownXid} ELSE whole_xid END,
    whole_seq = CASE WHEN whole_xid IS NULL AND ${isWhole} THEN nextval('places') ELSE whole_seq END`;
}
