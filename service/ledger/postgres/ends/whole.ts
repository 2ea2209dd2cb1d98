import { ownXid } from "../tables.ts";

/** A group is whole, once, when all that is wanted of it is over; `isWhole` says so in SQL. */
export function whole(isWhole: string): string {
  return `whole_xid = CASE WHEN whole_xid IS NULL AND ${isWhole} THEN ${ownXid} ELSE whole_xid END,
    whole_seq = CASE WHEN whole_xid IS NULL AND ${isWhole} THEN nextval('places') ELSE whole_seq END`;
}
