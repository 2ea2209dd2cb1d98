/** The edge from a call's parent to the call: how its tokens continue it (`match`), and if they do not, why (`cause`). */
import { imagesIn } from "../../base/media/stored-picture.ts";
import type { Message } from "../../base/schema/message.ts";
import type { EdgeCause, EdgeMatch } from "../../base/schema/trajectory.ts";
import { type CallHistory, tokenizerOf } from "../log/call-history.ts";
import type { Conversations, TriePlace } from "../log/conversations.ts";
import { findCause } from "./causes.ts";
import type { Edge } from "./edge.ts";
import { isOfPicture } from "./picture-tokens.ts";

/** The edge of every call, by call id. */
export function findEdges(calls: CallHistory[], parents: Map<string, CallHistory>, places: Conversations): Map<string, Edge> {
  const edges = new Map<string, Edge>();
  for (const call of calls) {
    const parent = parents.get(call.call_id) ?? null;
    edges.set(call.call_id, parent === null ? rootEdge : toEdge(call, parent, places, edges));
  }
  return edges;
}

const rootEdge: Edge = { parent: null, match: "root", cause: null, shared: 0, difference: null };

function toEdge(call: CallHistory, parent: CallHistory, places: Conversations, edges: Map<string, Edge>): Edge {
  const prompt = places.prompt.get(call.call_id);
  const full = places.full.get(parent.call_id);
  if (areForeign(call, parent)) return { parent, match: "diverged", cause: "other_tokenizer", shared: 0, difference: null };
  const told = call.decoded.get(parent.call_id) ?? null;
  if (prompt === undefined || full === undefined) {
    // Without the ids of both sides it is unknown how far the tokens agree; the messages may still show the change.
    const cause = findCause({ call, parent, decoded: null, position: null, places, edges });
    return { parent, match: "unknown", cause, shared: sharedPrompt(call, parent, places), difference: null };
  }
  const shared = places.token_trie.shared(prompt, full);
  if (shared === full.depth) return { parent, match: "exact", cause: null, shared, difference: null };
  if (partsAtPicture(prompt, full, shared, places)) {
    const cause = findCause({ call, parent, decoded: null, position: shared, places, edges });
    return { parent, match: "diverged", cause, shared, difference: { position: shared, parent_text: null, child_text: null } };
  }
  // Pads read the same whatever they show, so their text proves nothing of pictures behind the difference.
  const decoded = told?.same_text && !showsPicturesOf(parent, call, places) ? null : told;
  const cause = findCause({ call, parent, decoded, position: shared, places, edges });
  const difference = { position: shared, parent_text: told?.parent_text ?? null, child_text: told?.child_text ?? null };
  return { parent, match: matchOf(decoded?.same_text ?? null, cause), cause, shared, difference };
}

/** Another picture is another context, though its pads read the same. */
function partsAtPicture(prompt: TriePlace, full: TriePlace, shared: number, { token_trie }: Conversations): boolean {
  return [prompt, full].some((place) => isOfPicture(token_trie.items(place, shared)[0]));
}

/** Whether the call's prompt begins with the parent's pictures, each with as many pads. False if a place of the parent's is not told. */
function showsPicturesOf(parent: CallHistory, call: CallHistory, { input, message_trie, messages }: Conversations): boolean {
  const [before, now] = [parent.finished?.media ?? [], call.finished?.media ?? []];
  // Without any place, neither call is trained behind a picture.
  if (before.length === 0 && now.length === 0) return true;
  const place = input.get(parent.call_id);
  const shown = place ? imagesIn(message_trie.items(place).map((index) => messages[index] as Message)).length : 0;
  return before.length === shown && before.every(({ sha256, length }, at) => now[at]?.sha256 === sha256 && now[at].length === length);
}

/** The session went on at an engine with another tokenizer: equal ids say other words there. */
function areForeign(call: CallHistory, parent: CallHistory): boolean {
  const [mine, theirs] = [tokenizerOf(call), tokenizerOf(parent)];
  return mine !== null && theirs !== null && mine !== theirs;
}

/** The tokens differ; do the texts? Without a decoding, a known change of the messages proves that they do. */
function matchOf(sameText: boolean | null, cause: EdgeCause): EdgeMatch {
  if (sameText === true) return "same_text";
  if (sameText === false) return "diverged";
  return cause === "unknown" ? "unknown" : "diverged";
}

/** A parent that has a prompt but no sample (it failed) still lends the tree its prompt. */
function sharedPrompt(call: CallHistory, parent: CallHistory, places: Conversations): number {
  const [mine, theirs] = [places.prompt.get(call.call_id), places.prompt.get(parent.call_id)];
  return mine && theirs ? places.token_trie.shared(mine, theirs) : 0;
}
