/** Dividing an engine's places: the pure parts. test/contracts/ledger.test.ts has them in each ledger. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { dividePlaces } from "../../../service/ledger/divide-places.ts";
import { type EnginePlaces, type EngineUse, grantPlaces } from "../../../service/ledger/engine-places.ts";

const sum = (numbers: Iterable<number>): number => [...numbers].reduce((total, one) => total + one, 0);
const limits = fc.integer({ min: 1, max: 200 });
const needs = fc
  .array(fc.integer({ min: 0, max: 60 }), { minLength: 1, maxLength: 12 })
  .map((list) => list.map((wanted, at) => ({ node: `n${at}`, wanted })));

test("shares add up to the limit, no node that wants a place has none where there is one for each, and order does not matter", () => {
  fc.assert(
    fc.property(limits, needs, fc.boolean(), (limit, nodes, isReversed) => {
      const shares = dividePlaces(limit, nodes);
      const total = sum(nodes.map(({ wanted }) => wanted));
      assert.equal(sum(shares.values()), limit);
      const wanting = nodes.filter(({ wanted }) => wanted > 0);
      for (const { node, wanted } of wanting) {
        const share = shares.get(node) ?? 0;
        if (total <= limit) assert.ok(share >= wanted);
        else assert.ok(share <= wanted && (share >= 1 || wanting.length > limit));
      }
      assert.deepEqual(dividePlaces(limit, isReversed ? nodes.toReversed() : nodes), shares);
    }),
  );
});

test("a node that wants more gets more", () => {
  assert.deepEqual(
    Object.fromEntries(
      dividePlaces(10, [
        { node: "a", wanted: 31 },
        { node: "b", wanted: 11 },
      ]),
    ),
    { a: 7, b: 3 },
  );
  assert.deepEqual(
    Object.fromEntries(
      dividePlaces(10, [
        { node: "a", wanted: 0 },
        { node: "b", wanted: 3 },
      ]),
    ),
    { a: 4, b: 6 },
  );
  assert.deepEqual(
    Object.fromEntries(
      dividePlaces(1, [
        { node: "a", wanted: 2 },
        { node: "b", wanted: 3 },
      ]),
    ),
    { a: 0, b: 1 },
  );
});

/** Nodes over one engine, as they are: an answer may be lost on the way, and running calls are not ended. */
class Nodes {
  readonly kept = new Map<string, EnginePlaces[]>();
  readonly #limit: number;
  readonly #nodes = new Map<string, { wanted: number; places: number; running: number }>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  want(node: string, wanted: number): void {
    this.#nodes.set(node, { places: 0, running: 0, ...this.#nodes.get(node), wanted });
  }

  die(node: string): void {
    this.#nodes.delete(node);
    this.kept.delete(node);
  }

  endOne(node: string): void {
    const at = this.#nodes.get(node);
    if (at && at.running > 0) at.running -= 1;
  }

  beat(node: string, isLost: boolean): void {
    const at = this.#nodes.get(node);
    if (at === undefined) return;
    const held = Math.max(at.places, at.running);
    const use: EngineUse = {
      name: "e",
      server: "e",
      limit: this.#limit,
      used: at.running,
      waiting: Math.max(0, at.wanted - at.running),
      held,
    };
    const others = [...this.kept].filter(([name]) => name !== node).map(([name, engines]) => ({ name, engines }));
    const granted = grantPlaces(node, [use], others);
    this.kept.set(node, granted);
    if (!isLost) at.places = granted[0]?.granted ?? 0;
    at.running = Math.max(at.running, Math.min(at.wanted, at.places));
  }

  /** Calls that may be at the engine now. */
  get atOnce(): number {
    return sum([...this.#nodes.values()].map(({ places, running }) => Math.max(places, running)));
  }

  get granted(): Record<string, number> {
    return Object.fromEntries([...this.#nodes].map(([node, { places }]) => [node, places]));
  }

  get names(): string[] {
    return [...this.#nodes.keys()];
  }
}

const happening = fc.record({
  what: fc.constantFrom("want", "beat", "beat", "beat", "end", "lose", "die"),
  node: fc.integer({ min: 0, max: 4 }).map((at) => `n${at}`),
  wanted: fc.integer({ min: 0, max: 40 }),
});

test("nodes never hold more than the limit, whatever happens and in whichever order; with the same needs their grants come to rest at fair shares", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 64 }), fc.array(happening, { maxLength: 60 }), (limit, events) => {
      const nodes = new Nodes(limit);
      for (const { what, node, wanted } of events) {
        if (what === "want") nodes.want(node, wanted);
        else if (what === "end") nodes.endOne(node);
        else if (what === "die") nodes.die(node);
        else nodes.beat(node, what === "lose");
        assert.ok(nodes.atOnce <= limit, `${nodes.atOnce} of ${limit}`);
      }
      const round = () => {
        for (const node of nodes.names) {
          for (let calls = 0; calls < limit; calls++) nodes.endOne(node);
          nodes.beat(node, false);
          assert.ok(nodes.atOnce <= limit);
        }
      };
      for (const node of nodes.names) nodes.want(node, 20);
      for (let beats = 0; beats < 4; beats++) round();
      const before = nodes.granted;
      round();
      assert.deepEqual(nodes.granted, before);
      const fair = limit / nodes.names.length;
      for (const places of Object.values(before)) assert.ok(places >= Math.min(1, Math.floor(fair)), JSON.stringify(before));
    }),
    { numRuns: 200 },
  );
});

test("the lowest limit that a node states holds for all, and another server's places do not count", () => {
  const use = (limit: number, held: number, server = "s"): EngineUse => ({ name: "e", server, limit, used: 0, waiting: 9, held });
  const other = (limit: number, held: number, server = "s") => ({ name: "b", engines: [{ ...use(limit, held, server), granted: held }] });
  const at = (own: EngineUse, ...others: ReturnType<typeof other>[]) => grantPlaces("a", [own], others)[0]?.granted;
  assert.equal(at(use(8, 0), other(4, 1)), 2);
  assert.equal(at(use(8, 0), other(4, 4)), 0, "none is free: the other one is told first");
  assert.equal(at(use(8, 0), other(4, 4, "elsewhere")), 8);
  assert.equal(at(use(8, 8), other(4, 0)), 2, "what is held beyond the limit is given back");
});
