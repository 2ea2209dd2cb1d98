/**
 * The token tree of one session. Prompt and observation tokens are shared wherever contexts agree; a sample is an
 * event and is never shared: two calls that sampled the same ids after the same prompt are two branches. A prompt runs
 * through a sampled branch only along its own parent, so the path from the root to a sample is what the engine saw.
 */

import { type CallHistory, tokenizerOf } from "../log/call-history.ts";
import type { Conversations, TriePlace } from "../log/conversations.ts";
import { policyBounds } from "../log/policy-of.ts";
import type { Edge } from "./edge.ts";

export type Branch = {
  parent: Branch | null;
  /** Tokens from the root to this branch's end. */
  depth: number;
  /** Its own tokens are `tokens[start]` …, `depth - parent.depth` of them. */
  tokens: ArrayLike<number>;
  start: number;
  /** The call that sampled these tokens, or that brought them first. */
  call: CallHistory;
  /** For a sample, `start` is also the position in the call's `sampled_ids` and `logprobs`. */
  sampled: boolean;
  /** Prompt and observation branches by their first token: no two begin alike. */
  children: Map<number, Branch>;
  samples: Branch[];
};

export type TokenTree = {
  root: Branch;
  /** The roots of further tokenizers: their ids mean other text and share nothing. */
  otherRoots: Branch[];
  /** Call id -> the branch that its prompt ends with; the root for an empty prompt; absent without ids. */
  promptEnd: Map<string, Branch>;
  /** Call id -> the end of its sample; absent where it sampled nothing that can be placed. */
  sampleEnd: Map<string, Branch>;
  /** Tokens compared and branches visited. */
  steps: number;
};

/** `calls` in rank order, so that a parent stands in the tree before its children. */
export function buildTree(calls: CallHistory[], edges: Map<string, Edge>, places: Conversations): TokenTree {
  const builder = new TreeBuilder();
  for (const call of calls) {
    const prompt = places.prompt.get(call.call_id);
    if (prompt === undefined) continue;
    builder.add(call, edges.get(call.call_id) as Edge, prompt, places);
  }
  return builder.tree;
}

class TreeBuilder {
  readonly tree: TokenTree = { root: newRoot(), otherRoots: [], promptEnd: new Map(), sampleEnd: new Map(), steps: 0 };
  readonly #roots = new Map<string, Branch>();

  add(call: CallHistory, edge: Edge, prompt: TriePlace, places: Conversations): void {
    const from = this.#parting(edge) ?? this.#rootOf(call);
    const rest = places.token_trie.items(prompt, from.depth);
    const end = this.#follow(from, rest, call);
    this.tree.promptEnd.set(call.call_id, end);
    const sampled = call.finished?.sampled_ids ?? [];
    if (sampled.length > 0) this.tree.sampleEnd.set(call.call_id, this.#sample(end, sampled, call));
  }

  /** The first tokenizer uses the tree's root, and so does a call with an unknown tokenizer. */
  #rootOf(call: CallHistory): Branch {
    const tokenizer = tokenizerOf(call);
    if (tokenizer === null) return this.tree.root;
    let root = this.#roots.get(tokenizer);
    if (root === undefined) {
      root = this.#roots.size === 0 ? this.tree.root : newRoot();
      if (root !== this.tree.root) this.tree.otherRoots.push(root);
      this.#roots.set(tokenizer, root);
    }
    return root;
  }

  /** Where this call's path leaves its parent's: the end of the parent's sample, or the token at which they part; null: at a root. */
  #parting({ parent, shared }: Edge): Branch | null {
    const { promptEnd, sampleEnd } = this.tree;
    const end = parent === null ? undefined : (sampleEnd.get(parent.call_id) ?? promptEnd.get(parent.call_id));
    if (end === undefined || shared === 0) return null;
    let below = end;
    while (below.parent !== null && below.parent.depth >= shared) {
      this.tree.steps++;
      below = below.parent;
    }
    return below.depth <= shared ? below : this.#split(below, shared);
  }

  #follow(from: Branch, tokens: number[], call: CallHistory): Branch {
    let branch = from;
    let at = 0;
    while (at < tokens.length) {
      const child = branch.children.get(tokens[at] as number);
      if (child === undefined) {
        const added = newBranch(branch, tokens, at, call, false);
        branch.children.set(tokens[at] as number, added);
        this.tree.steps++;
        return added;
      }
      const length = child.depth - branch.depth;
      let shared = 1;
      while (shared < length && at + shared < tokens.length && child.tokens[child.start + shared] === tokens[at + shared]) shared++;
      this.tree.steps += shared;
      at += shared;
      branch = shared === length ? child : this.#split(child, branch.depth + shared);
    }
    return branch;
  }

  #sample(end: Branch, sampled: number[], call: CallHistory): Branch {
    const branch = newBranch(end, sampled, 0, call, true);
    end.samples.push(branch);
    // A node is by one version of the weights.
    for (const start of policyBounds(call)) if (start > 0 && start < sampled.length) this.#split(branch, end.depth + start);
    return branch;
  }

  /** The upper half is the new branch, so a reference to `branch` keeps the same end. Both halves keep their call. */
  #split(branch: Branch, depth: number): Branch {
    const parent = branch.parent as Branch;
    const upper: Branch = { ...branch, depth, children: new Map(), samples: [] };
    branch.start += depth - parent.depth;
    branch.parent = upper;
    if (branch.sampled) {
      parent.samples[parent.samples.indexOf(branch)] = upper;
      upper.samples.push(branch);
    } else {
      parent.children.set(upper.tokens[upper.start] as number, upper);
      upper.children.set(branch.tokens[branch.start] as number, branch);
    }
    this.tree.steps++;
    return upper;
  }
}

function newRoot(): Branch {
  return { parent: null, depth: 0, tokens: [], start: 0, call: null as never, sampled: false, children: new Map(), samples: [] };
}

function newBranch(parent: Branch, tokens: ArrayLike<number>, start: number, call: CallHistory, sampled: boolean): Branch {
  return { parent, depth: parent.depth + tokens.length - start, tokens, start, call, sampled, children: new Map(), samples: [] };
}
