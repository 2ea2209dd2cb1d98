/** Results from a cursor on, each as the JSON of a line before its payload. */

import type { TrainerLedger } from "./callers/trainer-ledger.ts";
import { type Gaps, partGroup, type ResultRow, type SetSpec, type WholeGroup } from "./ledger/index.ts";
import { atStep, isMixed } from "./stale-rows.ts";

export type ResultLine = {
  cursor: string;
  rows: ResultRow[];
  /** JSON without its last brace. The payload is added after it as text. */
  text: string;
};

/** `step`: the trainer's own; null: that of the results. `gaps`: where results are expired. */
export type LineOrder = { isWhole: boolean; spec: SetSpec; step: number | null; gaps: Gaps };

/** Throws `not_found`, and `request_invalid` for a cursor of another set or kind, and a 410 for one before what is expired. */
export type ReadLines = (after: string | null, limit: number) => Promise<ResultLine[]>;

export function linesFrom(ledger: Pick<TrainerLedger, "results" | "wholeGroups">, set: string, order: LineOrder): ReadLines {
  return order.isWhole
    ? async (after, limit) => (await ledger.wholeGroups(set, after, limit, order.gaps)).map((group) => groupLine(group, order))
    : async (after, limit) =>
        (await ledger.results(set, after, limit, order.gaps)).map(({ cursor, row }) => {
          const rows = atStep([row], order.spec, order.step);
          return { cursor, rows, text: openText({ cursor, result: rows[0] }) };
        });
}

/** `results`: those that the group is made of; `spare`: those that over-provision ended, and such that came before them. */
function groupLine({ rows: all, ...group }: WholeGroup, { spec, step }: LineOrder): ResultLine {
  const { results: rows, spare } = partGroup(atStep(all, spec, step), group.group_size);
  return { cursor: group.cursor, rows, text: openText({ ...group, mixed_policies: isMixed(rows), results: rows, spare }) };
}

function openText(line: object): string {
  return JSON.stringify(line).slice(0, -1);
}
