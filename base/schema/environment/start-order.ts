/**
 * The names so that each stands behind those that it depends on; null where they wait for each other. A name that is no
 * service holds nothing up.
 */
export function startOrder(services: Record<string, { depends_on: Record<string, unknown> }>): string[] | null {
  const left = new Map(Object.entries(services));
  const order: string[] = [];
  while (left.size > 0) {
    const next = [...left].find(([, { depends_on }]) => Object.keys(depends_on).every((name) => !left.has(name)));
    if (next === undefined) return null;
    order.push(next[0]);
    left.delete(next[0]);
  }
  return order;
}
