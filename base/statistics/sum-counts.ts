/** Adds up counts by name. Names may be strangers' words, so no plain object is asked for them. */
export function sumCounts(all: Iterable<Readonly<Record<string, number>>>): Record<string, number> {
  const sum = new Map<string, number>();
  for (const counts of all) for (const [name, count] of Object.entries(counts)) sum.set(name, (sum.get(name) ?? 0) + count);
  return Object.fromEntries(sum);
}
