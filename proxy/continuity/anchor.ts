/**
 * What a template prints behind a turn: found by rendering a small conversation of the turn's shape once without and
 * once with what is appended, and comparing only what stands behind a mark inside the turn. So it does not matter what
 * the template does to the conversation before it, nor how the turn itself was tokenised. Right or refused: wherever the
 * two disagree in anything but scaffolding of the turn itself, there is no suffix.
 */
import type { Message, Tool } from "../../base/schema/message.ts";
import { commonPrefix } from "../../base/tokens/prefix.ts";
import { marks } from "./shape.ts";

/** The engine's own template and tokenizer, with the call's settings. */
export type Renderer = {
  render(messages: Message[], tools: Tool[], generation: boolean): Promise<{ token_ids: number[]; text: string }>;
  /** The ids alone, with the generation prompt. */
  ids(messages: Message[], tools: Tool[]): Promise<number[]>;
  tokenize(text: string): Promise<number[]>;
  detokenize(ids: number[]): Promise<string>;
};

/** The token that the turn was sampled to end with; null: it was cut off, and the template closes it alone. */
export type Close = number | null;

export type Anchor = {
  /** Ids of the rendered conversation up to where the turn is closed, `close` included. */
  head: number[];
  /** What follows: the rest of the template's close, the appended messages and the generation prompt. */
  suffix: number[];
  /** What the template prints between a turn's text and `close`; a sample must end with it. Empty where anything may stand there. */
  closing: number[];
  /** The rendered text with what was appended. */
  text: string;
};

export type NoAnchor = "no_suffix" | "other_close";

export type AnchorSearch = {
  /** A conversation that ends with the turn, with the mark in it. */
  conversation: Message[];
  appended: Message[];
  tools: Tool[];
  close: Close;
};

export async function findAnchor(renderer: Renderer, { conversation, appended, tools, close }: AnchorSearch): Promise<Anchor | NoAnchor> {
  const alone = await renderer.render(conversation, tools, false);
  const continued = await renderer.render([...conversation, ...appended], tools, true);
  const before = split(alone.text);
  const after = split(continued.text);
  const calls = namesIn(conversation);
  if (!before || !after || !isSameContext(before.head, after.head, calls) || marksIn(after.tail) !== "") return "no_suffix";

  const tail = await renderer.tokenize(after.tail);
  const closed = close === null ? { at: 0, closing: [] } : await closedAt(renderer, close, before.tail, tail, calls.length > 0);
  if (closed === null) return "other_close";
  if (calls.length > 0) {
    // A template that leaves calls out, one of two even, prints a turn that is not the one that was sampled.
    const turn = after.head.slice(after.head.indexOf(marks.user)) + (await renderer.detokenize(tail.slice(0, closed.at)));
    if (calls.some((name) => timesIn(turn, name) < calls.filter((other) => other === name).length)) return "no_suffix";
  }
  const suffix = tail.slice(closed.at);
  const head = continued.token_ids.slice(0, continued.token_ids.length - suffix.length);
  // The close is a token that no text merges with, so what follows is tokenised alike wherever it stands. Seen, not hoped.
  if (suffix.length === 0 || !endsWith(continued.token_ids, suffix) || (close !== null && head.at(-1) !== close)) return "no_suffix";
  return { head, suffix, closing: closed.closing, text: continued.text };
}

/**
 * Where in `tail` the sampled part ends: behind the token that the model ended its turn with, which must stand there once
 * whether or not anything is appended. Null: the template closes the turn otherwise.
 */
async function closedAt(renderer: Renderer, close: number, alone: string, tail: number[], hasCalls: boolean) {
  // White space ends no turn. An engine that leaves out the stop token would otherwise have its last line break taken for one.
  if ((await renderer.detokenize([close])).trim() === "") return null;
  const own = alone === "" ? [] : await renderer.tokenize(alone);
  const shared = tail.slice(0, commonPrefix(own, tail));
  const at = shared.indexOf(close);
  // Some models end a turn with the mark of the next one, which is there only where something is appended.
  if (at === -1) return shared.length === own.length && tail[own.length] === close ? { at: own.length + 1, closing: own } : null;
  if (shared.indexOf(close, at + 1) !== -1) return null;
  const closing = shared.slice(0, at);
  const isFree = hasCalls || at === 0 || (await renderer.detokenize(closing)).trim() === "";
  return { at: at + 1, closing: isFree ? [] : closing };
}

/** Before and behind the mark; null where it does not stand there exactly once. */
function split(text: string): { head: string; tail: string } | null {
  const [head, tail, ...more] = text.split(marks.turn);
  return head === undefined || tail === undefined || more.length > 0 ? null : { head, tail };
}

/**
 * What is appended may change what stands between the user's words and the turn's (an empty thinking block that only a
 * last turn has), and nothing else: a template that moves its instructions or tools has no suffix.
 */
function isSameContext(a: string, b: string, calls: string[]): boolean {
  if (a === b) return true;
  const [userA, userB] = [a.indexOf(marks.user), b.indexOf(marks.user)];
  if (userA === -1 || userA !== userB || a.slice(0, userA) !== b.slice(0, userB) || marksIn(a) !== marksIn(b)) return false;
  // The turn's own words must be the same: where it begins with a call, from the call's name on.
  const words = a.includes(marks.text, userA) ? marks.text : calls[0];
  return words === undefined || a.slice(a.indexOf(words, userA)) === b.slice(b.indexOf(words, userB));
}

/** The marks in the order in which they stand. */
function marksIn(text: string): string {
  return (text.match(/Alidade[a-z]+/g) ?? []).join();
}

function namesIn(conversation: Message[]): string[] {
  return (conversation.at(-1)?.parts ?? []).flatMap((part) => (part.type === "tool_call" ? [part.name] : []));
}

function timesIn(text: string, part: string): number {
  return text.split(part).length - 1;
}

function endsWith(ids: number[], tail: number[]): boolean {
  return ids.length >= tail.length && commonPrefix(ids.slice(ids.length - tail.length), tail) === tail.length;
}
