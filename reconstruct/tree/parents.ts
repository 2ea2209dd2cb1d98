/** Which turn did this request continue? Recorded identity decides first, then tokens, then messages and time within the agent. */
import type { CallOutcome } from "../../base/schema/trajectory.ts";
import type { CallHistory } from "../log/call-history.ts";
import type { Conversations, TriePlace } from "../log/conversations.ts";

/** The parent of every call. `calls` in rank order; a parent was always begun before its child. */
export function findParents(calls: CallHistory[], places: Conversations, outcomes: Map<string, CallOutcome>): Map<string, CallHistory> {
  const byId = new Map(calls.map((call) => [call.call_id, call]));
  const parents = new Map<string, CallHistory>();
  const continued = new Set<string>();
  const lastOfAgent = new Map<string, CallHistory>();
  const finder = new Finder(places, outcomes, continued);
  for (const call of calls) {
    const parent = chooseParent(call, recordedParent(call, byId), finder, lastOfAgent.get(call.begun.agent));
    if (parent !== null) {
      parents.set(call.call_id, parent);
      continued.add(parent.call_id);
    }
    if (!isAside(call)) lastOfAgent.set(call.begun.agent, call);
  }
  return parents;
}

/** Calls outside the conversation: no call continues them, and they do not interrupt it. */
function isAside(call: CallHistory): boolean {
  const { request_class } = call.begun;
  return request_class === "title" || request_class === "topic" || request_class === "quota" || request_class === "check";
}

function recordedParent(call: CallHistory, byId: Map<string, CallHistory>): CallHistory | null {
  const { parent_call_id } = call.begun;
  const parent = parent_call_id === null ? undefined : byId.get(parent_call_id);
  return parent !== undefined && parent.rank < call.rank ? parent : null;
}

/** An id or carrier that we minted names one call; equal content names every call with that content. */
function isCertain(call: CallHistory, parent: CallHistory): boolean {
  const named = call.begun.restored.filter((restored) => restored.from_call_id === parent.call_id);
  return named.length === 0 || named.some((restored) => restored.evidence !== "content");
}

function chooseParent(
  call: CallHistory,
  recorded: CallHistory | null,
  finder: Finder,
  previous: CallHistory | undefined,
): CallHistory | null {
  if (recorded !== null && isCertain(call, recorded)) return recorded;
  if (previous !== undefined && finder.isCompacted(call, previous)) return previous;
  // A weaker candidate is believed as far as its tokens reach into this prompt; ties go to the earlier in this list.
  const candidates = [recorded, finder.byTokens(call), finder.byMessages(call)].filter((candidate) => candidate !== null);
  let best: CallHistory | null = null;
  let bestShared = -1;
  for (const candidate of candidates) {
    const shared = finder.shared(call, candidate);
    if (best === null || shared > bestShared) [best, bestShared] = [candidate, shared];
  }
  return best;
}

/** Could `call` have seen what `earlier` sampled? */
function isBefore(earlier: CallHistory, call: CallHistory): boolean {
  return earlier.rank < call.rank && earlier.finished !== null && earlier.finished.time <= call.begun.time;
}

class Finder {
  readonly #places: Conversations;
  readonly #outcomes: Map<string, CallOutcome>;
  readonly #continued: Set<string>;

  constructor(places: Conversations, outcomes: Map<string, CallOutcome>, continued: Set<string>) {
    this.#places = places;
    this.#outcomes = outcomes;
    this.#continued = continued;
  }

  /** How far into this call's prompt the candidate's prompt and sample reach; 0 where there are no ids. */
  shared(call: CallHistory, candidate: CallHistory): number {
    const prompt = this.#places.prompt.get(call.call_id);
    const full = this.#places.full.get(candidate.call_id) ?? this.#places.prompt.get(candidate.call_id);
    return prompt && full ? this.#places.token_trie.shared(prompt, full) : 0;
  }

  /**
   * Is this the agent's first call after `previous` compacted its history? Nothing in the new history can be
   * recognised; where it is no shorter, the compaction was not taken and the conversation went on without it.
   */
  isCompacted(call: CallHistory, previous: CallHistory): boolean {
    if (previous.begun.request_class !== "compaction" || !isBefore(previous, call)) return false;
    const [before, after] = [this.#places.input.get(previous.call_id), this.#places.input.get(call.call_id)];
    return before !== undefined && after !== undefined && after.depth < before.depth;
  }

  /** The call with the longest exact prefix of this prompt (its prompt and sample), of the same agent where there is one. */
  byTokens(call: CallHistory): CallHistory | null {
    let other: CallHistory | null = null;
    const trie = this.#places.token_trie;
    let place: TriePlace | null = trie.marked(this.#places.prompt.get(call.call_id) ?? null);
    for (; place !== null; place = trie.marked(place.parent)) {
      const earlier = place.marks.filter((mark) => isBefore(mark, call));
      const own = this.#best(earlier.filter((mark) => mark.begun.agent === call.begun.agent));
      if (own !== null) return own;
      // A sub-agent that inherits its parent's history continues a call of another agent.
      other ??= this.#best(earlier);
    }
    return other;
  }

  /**
   * The latest call of this agent whose conversation is a strict prefix of this one, with its turn, or an edit of it, right
   * after that prefix. A turn that never appears again was dropped; its call is chosen only without another candidate.
   */
  byMessages(call: CallHistory): CallHistory | null {
    let below = this.#places.input.get(call.call_id);
    let dropped: CallHistory | null = null;
    for (let place = below?.parent ?? null; below !== undefined && place !== null; place = place.parent) {
      this.#places.message_trie.steps++;
      const next = below.items[below.start] as number;
      const earlier = place.marks.filter((mark) => isBefore(mark, call) && mark.begun.agent === call.begun.agent && !isAside(mark));
      const repeated = earlier.filter((mark) => this.#places.output.get(mark.call_id) === next);
      const found = this.#best(repeated.length > 0 ? repeated : earlier);
      if (found !== null && this.#places.messages[next]?.role === "assistant") return found;
      dropped ??= found;
      below = place;
    }
    return dropped;
  }

  /**
   * Chooses among calls that fit equally: first a delivered call (no call continues an abandoned try), then one that has no
   * continuation yet (parallel agents with equal prompts each continue their own), then the latest.
   */
  #best(calls: CallHistory[]): CallHistory | null {
    const rank = (call: CallHistory): [number, number, number, number] => [
      this.#outcomes.get(call.call_id) === "delivered" ? 0 : 1,
      this.#continued.has(call.call_id) ? 1 : 0,
      -(call.finished?.time ?? 0),
      -call.rank,
    ];
    let best: CallHistory | null = null;
    for (const call of calls) if (best === null || compare(rank(call), rank(best)) < 0) best = call;
    return best;
  }
}

function compare(a: number[], b: number[]): number {
  for (let at = 0; at < a.length; at++) {
    const difference = (a[at] as number) - (b[at] as number);
    if (difference !== 0) return difference;
  }
  return 0;
}
