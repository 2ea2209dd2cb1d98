/**
 * What a template prints behind a turn: found by rendering a small conversation of the turn's shape once without and
 * once with what is appended, and comparing only what stands behind a mark inside the turn. So it does not matter what
 * the template does to the conversation before it, nor how the turn itself was tokenised. Right or refused: wherever the
 * two disagree in anything but scaffolding of the turn itself, there is no suffix.
 */
import type { Message, Tool } from "../../schema/message.ts";
import { marks } from "./shape.ts";

/** The engine's own template and tokenizer, with the call's settings. */
export type Renderer = {
  render(messages: Message[], tools: Tool[], generation: boolean): Promise<{ token_ids: number[]; text: string }>;
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
  /** The rendered text with what was appended. */
  text: string;
};

export type NoAnchor = "no_suffix" | "other_close";

export type Asked = {
  /** A conversation that ends with the turn, with the mark in it. */
  conversation: Message[];
  appended: Message[];
  tools: Tool[];
  close: Close;
  /** The turn has calls: between the mark and its close stands the end of a call. */
  hasCalls: boolean;
};

export async function findAnchor(renderer: Renderer, asked: Asked): Promise<Anchor | NoAnchor> {
  const { conversation, appended, tools, close } = asked;
  const alone = await renderer.render(conversation, tools, false);
  const continued = await renderer.render([...conversation, ...appended], tools, true);
  const before = split(alone.text);
  const after = split(continued.text);
  if (!before || !after?.tail.startsWith(before.tail) || after.tail === before.tail) return "no_suffix";
  if (!isSameContext(before.head, after.head) || marksIn(after.tail) !== "") return "no_suffix";
  // A template that leaves the calls out prints a turn that is not the one that was sampled.
  const printed = continued.text.slice(continued.text.indexOf(marks.user));
  if (asked.hasCalls && !namesIn(conversation).every((name) => printed.includes(name))) return "no_suffix";

  const tail = await renderer.tokenize(after.tail);
  const at = close === null ? 0 : await closedAt(renderer, close, before.tail, tail, asked.hasCalls);
  if (at === null) return "other_close";
  const suffix = tail.slice(at);
  const head = continued.token_ids.slice(0, continued.token_ids.length - suffix.length);
  // The close is a token that no text merges with, so what follows is tokenised alike wherever it stands. Seen, not hoped.
  if (suffix.length === 0 || !endsWith(continued.token_ids, suffix) || (close !== null && head.at(-1) !== close)) return "no_suffix";
  return { head, suffix, text: continued.text };
}

/** Where in `tail` the sampled part ends: behind the token that the model ended its turn with. Null: the template closes it otherwise. */
async function closedAt(renderer: Renderer, close: number, closing: string, tail: number[], hasCalls: boolean): Promise<number | null> {
  // White space ends no turn. An engine that leaves out the stop token would otherwise have its last line break taken for one.
  if ((await renderer.detokenize([close])).trim() === "") return null;
  const own = closing === "" ? [] : await renderer.tokenize(closing);
  const at = own.indexOf(close);
  if (at === -1) return isEqual(own, tail.slice(0, own.length)) && tail[own.length] === close ? own.length + 1 : null;
  if (own.indexOf(close, at + 1) !== -1 || !isEqual(own.slice(0, at + 1), tail.slice(0, at + 1))) return null;
  // Behind text the close comes at once; only white space that the template puts in between may be missing.
  if (!hasCalls && at > 0 && (await renderer.detokenize(own.slice(0, at))).trim() !== "") return null;
  return at + 1;
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
function isSameContext(a: string, b: string): boolean {
  if (a === b) return true;
  const [userA, userB] = [a.indexOf(marks.user), b.indexOf(marks.user)];
  return userA !== -1 && userA === userB && a.slice(0, userA) === b.slice(0, userB) && marksIn(a) === marksIn(b);
}

/** The marks in the order in which they stand. */
function marksIn(text: string): string {
  return (text.match(/Alidade[a-z]+/g) ?? []).join();
}

function namesIn(conversation: Message[]): string[] {
  return (conversation.at(-1)?.parts ?? []).flatMap((part) => (part.type === "tool_call" ? [part.name] : []));
}

function endsWith(ids: number[], tail: number[]): boolean {
  return ids.length >= tail.length && isEqual(ids.slice(ids.length - tail.length), tail);
}

function isEqual(a: number[], b: number[]): boolean {
  return a.length === b.length && a.every((id, index) => id === b[index]);
}
