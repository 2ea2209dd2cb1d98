/** What of its calls' requests no model got, by name: counted in every report, and said by one sentence. */
import type { CallBegun } from "../base/schema/session-log.ts";
import type { CallRecord } from "../base/schema/trajectory.ts";

/** A session has a handful; a hostile one has other names in each call. */
const mostNames = 100;

/** Older releases had the names in `native`, and left history out too. */
const olderLists = { omitted_tools: "tool", omitted_items: "history", omitted_blocks: "history", omitted_parts: "history" };

/** Undefined where nothing was left out. */
export function omittedOf({ omitted, native }: Pick<CallBegun, "omitted" | "native">): string[] | undefined {
  if (omitted) return omitted;
  const older = Object.entries(olderLists).flatMap(([field, kind]) => {
    const names = native[field];
    return Array.isArray(names) ? names.map((name) => `${kind} ${String(name)}`) : [];
  });
  return older.length === 0 ? undefined : [...new Set(older)];
}

/** Name -> calls. */
export function countOmitted(calls: readonly Pick<CallRecord, "omitted">[]): Record<string, number> {
  return addOmitted(calls.map(({ omitted = [] }) => Object.fromEntries(omitted.map((name) => [name, 1]))));
}

/** The counts of several sessions as one. */
export function addOmitted(counts: Iterable<Record<string, number>>): Record<string, number> {
  const sum = new Map<string, number>();
  for (const each of counts)
    for (const [name, calls] of Object.entries(each)) {
      const known = sum.has(name) || sum.size < mostNames ? name : "further names";
      sum.set(known, (sum.get(known) ?? 0) + calls);
    }
  return Object.fromEntries(sum);
}

/** The sentence of `record`, `show`, `fidelity` and `doctor`; null where nothing was left out. */
export function describeOmitted(counts: Record<string, number>): string | null {
  const names = Object.entries(counts).sort(([, a], [, b]) => b - a);
  if (names.length === 0) return null;
  const listed = names.map(([name, calls]) => `${name} (${calls.toLocaleString("en")} ${calls === 1 ? "call" : "calls"})`);
  return `the model did not get ${listed.join(", ")}`;
}
