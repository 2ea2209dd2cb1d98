/** The layout of a ledger's tables: what a driver reads, and how tables of the layout before become today's. */
export type Layout = {
  /** Raised when the tables change in a way that an older driver would misread. */
  readonly now: number;
  /** Statements that turn tables of the layout before into today's. Absent: none can be. */
  readonly fromBefore?: readonly string[];
};

/** Returns the statements that turn tables of layout `found` into today's. Throws an error whose message says what to do. */
export function stepsToNow(found: string, { now, fromBefore }: Layout, elsewhere: string): readonly string[] {
  if (found === String(now)) return [];
  if (found === String(now - 1) && fromBefore !== undefined) return fromBefore;
  const [reads, cure] = Number(found) > now ? [`${now} at most`, "update Alidade"] : [String(now), `name another ${elsewhere}`];
  throw new Error(`it is a ledger of layout ${found}, and this version reads ${reads}: ${cure}`);
}
