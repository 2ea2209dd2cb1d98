/** Results from a cursor on, each as the JSON of a line before its payload. */
import type { Ledger, ResultRow } from "../ledger/index.ts";

export type ResultLine = {
  cursor: string;
  rows: ResultRow[];
  /** Without its last brace: a payload comes behind it as text. */
  text: string;
};

/** Throws `not_found`, and `request_invalid` for a cursor of another set or kind. */
export type ReadLines = (after: string | null, limit: number) => Promise<ResultLine[]>;

export function linesFrom(ledger: Ledger, set: string, isWhole: boolean): ReadLines {
  return isWhole
    ? async (after, limit) => {
        const groups = await ledger.wholeGroups(set, after, limit);
        return groups.map(({ rows, ...group }) => ({ cursor: group.cursor, rows, text: openText({ ...group, results: rows }) }));
      }
    : async (after, limit) => {
        const results = await ledger.results(set, after, limit);
        return results.map(({ cursor, row }) => ({ cursor, rows: [row], text: openText({ cursor, result: row }) }));
      };
}

function openText(line: object): string {
  return JSON.stringify(line).slice(0, -1);
}
