/** The log's deltas laid out: where each call's conversation, prompt and sample stand among the others of its session. */

import { AlidadeError } from "../../base/errors.ts";
import { canonicalJson } from "../../base/schema/ids.ts";
import type { Message } from "../../base/schema/message.ts";
import type { PromptPicture } from "../../base/schema/session-log.ts";
import { idOf, MarkedPads, markedAlike } from "../tree/picture-tokens.ts";
import { SequenceTrie, type TrieNode } from "../tree/sequence-trie.ts";
import type { CallHistory } from "./call-history.ts";

export type TriePlace = TrieNode<CallHistory>;

export type Conversations = {
  /** Message ids in order of first appearance; `index` is the item that stands for it in the message trie. */
  messages: Message[];
  message_trie: SequenceTrie<CallHistory>;
  /** Its items are ids, and for the pads of pictures the numbers of `pictures`. */
  token_trie: SequenceTrie<CallHistory>;
  pictures: MarkedPads;
  /** By call id. Absent where the log cannot say: no ids from the engine. */
  input: Map<string, TriePlace>;
  prompt: Map<string, TriePlace>;
  /** End of prompt and sample; only where both are known. */
  full: Map<string, TriePlace>;
  /** Index of the message that the call sampled. */
  output: Map<string, number>;
};

/** Lays out all calls of a session (those that are whole: damage.ts). The work is that of the new messages and tokens, not of calls × prompt length. */
export function layOut(calls: CallHistory[]): Conversations {
  const interner = new Interner();
  const newMessages = new Map<string, number[]>();
  const output = new Map<string, number>();
  for (const call of calls) {
    newMessages.set(call.call_id, call.begun.messages.new.map(interner.index));
    const message = call.finished?.message;
    if (message) output.set(call.call_id, interner.index(message));
  }
  const message_trie = new SequenceTrie<CallHistory>();
  const conversations = enterAll(calls, message_trie, (call) => {
    const answer = output.get(call.call_id);
    return { list: { ...call.begun.messages, new: newMessages.get(call.call_id) ?? [] }, output: answer === undefined ? [] : [answer] };
  });
  const token_trie = new SequenceTrie<CallHistory>();
  const pictures = new MarkedPads();
  const contexts = enterAll(
    calls,
    token_trie,
    ({ finished }) => {
      if (!finished?.prompt_ids) return null;
      return { list: finished.prompt_ids, output: finished.sampled_ids ?? null, media: finished.media ?? [] };
    },
    pictures,
  );
  markEnds(calls, conversations.input, contexts.full);
  return {
    messages: interner.messages,
    message_trie,
    token_trie,
    pictures,
    input: conversations.input,
    prompt: contexts.input,
    full: contexts.full,
    output,
  };
}

function markEnds(calls: CallHistory[], input: Map<string, TriePlace>, full: Map<string, TriePlace>): void {
  for (const call of calls) {
    if (call.finished === null) continue;
    input.get(call.call_id)?.marks.push(call);
    // A call that sampled nothing continues nothing: only the others can be found by their tokens.
    if (call.finished.sampled_ids?.length) full.get(call.call_id)?.marks.push(call);
  }
}

/** A call's stored input and its output; the input ‖ output of its base is what `base_len` counts in. */
type Stored = {
  list: { base_call_id: string | null; base_len: number; new: number[] };
  output: number[] | null;
  /** The pictures of the input, if it is of tokens. */
  media?: readonly PromptPicture[];
};

type Entered = {
  /** Where each input ends. */
  input: Map<string, TriePlace>;
  /** Where each input ‖ output ends; only where both are known. */
  full: Map<string, TriePlace>;
};

/** Enters every call's list after the list it is stored against, wherever that stands in the log. */
function enterAll(
  calls: CallHistory[],
  trie: SequenceTrie<CallHistory>,
  storedOf: (call: CallHistory) => Stored | null,
  pictures = new MarkedPads(),
): Entered {
  const byId = new Map(calls.map((call) => [call.call_id, call]));
  const entered: Entered = { input: new Map(), full: new Map() };
  const seen = new Set<string>();
  for (const call of calls) {
    const stack = [call];
    while (stack.length > 0) {
      const top = stack.at(-1) as CallHistory;
      const stored = storedOf(top);
      const base = stored?.list.base_call_id ? byId.get(stored.list.base_call_id) : undefined;
      seen.add(top.call_id);
      if (base !== undefined && !seen.has(base.call_id)) {
        stack.push(base);
        continue;
      }
      stack.pop();
      const before = base && (storedOf(base)?.media ?? []);
      if (stored !== null && !entered.input.has(top.call_id)) enterOne(top.call_id, { ...stored, before, pictures }, trie, entered);
    }
  }
  return entered;
}

/** `before`: the pictures of the base. */
type Entering = Stored & { before: readonly PromptPicture[] | undefined; pictures: MarkedPads };

function enterOne(
  callId: string,
  { list, output, media = [], before = [], pictures }: Entering,
  trie: SequenceTrie<CallHistory>,
  { input, full }: Entered,
): void {
  const { base_call_id, base_len } = list;
  const from = base_call_id === null || base_len === 0 ? trie.root : (full.get(base_call_id) ?? input.get(base_call_id));
  if (from === undefined || base_len > from.depth)
    throw new AlidadeError(
      "store_error",
      `the log is damaged: call ${callId} goes on from ${list.base_len} entries of call ${base_call_id}, which it does not hold`,
    );
  const shared = trie.at(from, base_len);
  // Behind a picture that the base shows otherwise, its marks are others, and only its ids are the same.
  const alike = markedAlike(media, before, base_len);
  const anew = alike < base_len ? trie.items(shared, alike).map(idOf) : [];
  const end = trie.enter(trie.at(shared, alike), pictures.mark([...anew, ...list.new], media, alike));
  input.set(callId, end);
  if (output !== null) full.set(callId, trie.enter(end, output));
}

/** Gives equal messages one index. */
class Interner {
  readonly messages: Message[] = [];
  readonly #indices = new Map<string, number>();

  readonly index = (message: Message): number => {
    const key = canonicalJson(message);
    let index = this.#indices.get(key);
    if (index === undefined) {
      index = this.messages.push(message) - 1;
      this.#indices.set(key, index);
    }
    return index;
  };
}
