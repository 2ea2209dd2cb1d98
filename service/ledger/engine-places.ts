/**
 * An engine takes so many calls at once, whichever nodes they come from. Each node holds some of these places and sends no
 * more calls than that. It says with each beat what it needs and what it holds; the answer is what it may use from then on.
 * A place is given to a node only when no other one holds it, so the places of all nodes are never more than the engine's:
 * a node with too many is told so first, and the place is another's once the node has said that it is free.
 */
import { dividePlaces } from "./divide-places.ts";

/** What a node says of one of its engines. */
export type EngineUse = {
  name: string;
  /** The same word means the same server, at whichever node. */
  server: string;
  /** Calls that it takes at once, over all nodes. Where nodes state several numbers, the lowest one counts. */
  limit: number;
  /** Calls of this node that it works on. */
  used: number;
  /** Calls of this node that wait for a place. */
  waiting: number;
  /** Places that the node has or still uses: no other node may have them. */
  held: number;
};

/** `granted`: what the node may use. `held` may be more: calls that run are not ended. */
export type EnginePlaces = EngineUse & { granted: number };

/** What a node is granted at each of its engines, by what the other nodes hold. */
export function grantPlaces(node: string, uses: readonly EngineUse[], others: readonly NodePlaces[]): EnginePlaces[] {
  return uses.map((use) => {
    const rivals = others.flatMap(({ name, engines }) =>
      engines.filter(({ server }) => server === use.server).map((places) => ({ node: name, ...places })),
    );
    return granted({ node, ...use }, rivals);
  });
}

export type NodePlaces = { name: string; engines: readonly EnginePlaces[] };

type Holder = EngineUse & { node: string };

function granted({ node, ...own }: Holder, rivals: readonly Holder[]): EnginePlaces {
  const all = [{ node, ...own }, ...rivals];
  const limit = Math.min(...all.map((one) => one.limit));
  const held = all.reduce((sum, one) => sum + one.held, 0);
  const shares = dividePlaces(
    limit,
    all.map((one) => ({ node: one.node, wanted: one.used + one.waiting })),
  );
  const share = shares.get(node) ?? 0;
  const staysAsItIs = held <= limit && all.every((one) => isNear(one.held, shares.get(one.node) ?? 0));
  const target = staysAsItIs ? Math.max(own.held, share) : share;
  const granted = Math.min(target, own.held + Math.max(0, limit - held));
  return { ...own, held: Math.max(own.held, granted), granted };
}

/** A place that moves is empty for some beats. So places move only where a node lacks more than an eighth of its share. */
function isNear(held: number, share: number): boolean {
  return share - held <= share / 8;
}
