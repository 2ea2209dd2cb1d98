/** `wanted`: calls of the node that run or wait. */
export type Wanting = { node: string; wanted: number };

/**
 * Divides an engine's places among nodes. Where there are enough, each node gets what it wants, and the rest is spread evenly,
 * so that the next calls need not wait for a beat. Where there are too few, each node that wants any gets one (as far as they
 * reach), and the rest follows what else is wanted. The same needs give the same shares, in whichever order the nodes come.
 */
export function dividePlaces(limit: number, nodes: readonly Wanting[]): Map<string, number> {
  const inOrder = nodes.toSorted((one, other) => (one.node < other.node ? -1 : 1));
  const wanted = inOrder.reduce((sum, one) => sum + one.wanted, 0);
  if (wanted <= limit) return spread(inOrder, limit - wanted, even);
  // Those that want the most, where there is not even one for each.
  const first = inOrder.filter((one) => one.wanted > 0).toSorted((one, other) => other.wanted - one.wanted);
  const served = new Set(first.slice(0, limit).map(({ node }) => node));
  const firstPlace = inOrder.map(({ node, wanted }) => ({
    node,
    wanted: served.has(node) ? 1 : 0,
    more: served.has(node) ? wanted - 1 : 0,
  }));
  return spread(firstPlace, limit - served.size, ({ more }) => more);
}

const even = (): number => 1;

/** What each one has already (`wanted`), and its part of `rest` by weight; what is left by rounding goes to the largest remainders. */
function spread<T extends Wanting>(nodes: readonly T[], rest: number, weightOf: (node: T) => number): Map<string, number> {
  const weights = nodes.reduce((sum, node) => sum + weightOf(node), 0);
  const parts = nodes.map((node) => {
    const exact = weights === 0 ? 0 : (rest * weightOf(node)) / weights;
    return { node: node.node, places: node.wanted + Math.floor(exact), remainder: exact - Math.floor(exact) };
  });
  const given = parts.reduce((sum, { places }) => sum + places, 0) - nodes.reduce((sum, { wanted }) => sum + wanted, 0);
  const nearest = parts.toSorted((one, other) => other.remainder - one.remainder).slice(0, weights === 0 ? 0 : rest - given);
  for (const part of nearest) part.places += 1;
  return new Map(parts.map(({ node, places }) => [node, places]));
}
