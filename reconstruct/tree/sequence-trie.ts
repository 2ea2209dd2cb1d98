/**
 * A radix tree over number sequences (token ids, or messages by their index). It answers the two questions that
 * reconstruction asks of every pair of contexts, without ever comparing a pair: which earlier sequence is the longest
 * prefix of this one, and where do two of them part.
 *
 * A sequence stored as a delta is entered at the end of its base's prefix, so the work is that of its new items. The
 * end of every entered sequence is a node, and stays that node's end when the tree is split above it.
 */

export type TrieNode<Mark> = {
  parent: TrieNode<Mark> | null;
  /** Items from the root to this node's end. */
  depth: number;
  /** The node's own items are `items[start]` … , `depth - parent.depth` of them; the array is shared, never copied. */
  items: ArrayLike<number>;
  start: number;
  children: Map<number, TrieNode<Mark>>;
  /** What ends here. */
  marks: Mark[];
};

export class SequenceTrie<Mark> {
  readonly root: TrieNode<Mark> = { parent: null, depth: 0, items: [], start: 0, children: new Map(), marks: [] };
  /** Items compared and nodes visited: what the growth test counts. */
  steps = 0;
  readonly #markedAbove = new Map<TrieNode<Mark>, TrieNode<Mark> | null>();

  /** The node at which the sequence "path to `from`, then `items`" ends. */
  enter(from: TrieNode<Mark>, items: ArrayLike<number>): TrieNode<Mark> {
    let node = from;
    let at = 0;
    while (at < items.length) {
      this.steps++;
      const child = node.children.get(items[at] as number);
      if (child === undefined) return this.#append(node, items, at);
      const shared = this.#shared(child, items, at);
      at += shared;
      node = shared === child.depth - node.depth ? child : this.#split(child, node.depth + shared);
    }
    return node;
  }

  /** The node that ends at `depth` on the path to `node`; the tree is split there where none does. */
  at(node: TrieNode<Mark>, depth: number): TrieNode<Mark> {
    let below = node;
    while (below.parent !== null && below.parent.depth >= depth) {
      this.steps++;
      below = below.parent;
    }
    return below.depth === depth ? below : this.#split(below, depth);
  }

  /** How many leading items two entered sequences share. */
  shared(a: TrieNode<Mark>, b: TrieNode<Mark>): number {
    let left: TrieNode<Mark> | null = a;
    let right: TrieNode<Mark> | null = b;
    while (left !== right && left !== null && right !== null) {
      this.steps++;
      // Two nodes at one depth are no ancestors of each other, so both go up.
      const [l, r]: [number, number] = [left.depth, right.depth];
      if (l >= r) left = left.parent;
      if (r >= l) right = right.parent;
    }
    return left?.depth ?? 0;
  }

  /** The items on the path to `node` after the first `from`. */
  items(node: TrieNode<Mark>, from = 0): number[] {
    const out = new Array<number>(node.depth - from);
    for (let n: TrieNode<Mark> = node; n.parent !== null && n.depth > from; n = n.parent) {
      const first = Math.max(n.parent.depth, from);
      for (let depth = first; depth < n.depth; depth++) out[depth - from] = n.items[n.start + depth - n.parent.depth] as number;
      this.steps += n.depth - first;
    }
    return out;
  }

  /**
   * The nearest node with marks on the way from `node` (included) to the root; null where there is none. Asked only
   * when all is entered and marked: the answers are kept, so that many walks up one long path cost one.
   */
  marked(node: TrieNode<Mark> | null): TrieNode<Mark> | null {
    const passed: TrieNode<Mark>[] = [];
    let at = node;
    while (at !== null && at.marks.length === 0) {
      this.steps++;
      const known = this.#markedAbove.get(at);
      passed.push(at);
      at = known === undefined ? at.parent : known;
    }
    for (const each of passed) this.#markedAbove.set(each, at);
    return at;
  }

  #append(parent: TrieNode<Mark>, items: ArrayLike<number>, start: number): TrieNode<Mark> {
    const node = { parent, depth: parent.depth + items.length - start, items, start, children: new Map(), marks: [] };
    parent.children.set(items[start] as number, node);
    return node;
  }

  #shared(child: TrieNode<Mark>, items: ArrayLike<number>, at: number): number {
    const length = Math.min(child.depth - (child.parent?.depth ?? 0), items.length - at);
    let shared = 0;
    while (shared < length && child.items[child.start + shared] === items[at + shared]) shared++;
    this.steps += shared;
    return shared;
  }

  /** The upper half is the new node, so a reference to `node` keeps the same end. */
  #split(node: TrieNode<Mark>, depth: number): TrieNode<Mark> {
    const parent = node.parent as TrieNode<Mark>;
    const upper: TrieNode<Mark> = { parent, depth, items: node.items, start: node.start, children: new Map(), marks: [] };
    parent.children.set(node.items[node.start] as number, upper);
    node.start += depth - parent.depth;
    node.parent = upper;
    upper.children.set(node.items[node.start] as number, node);
    this.steps++;
    return upper;
  }
}
