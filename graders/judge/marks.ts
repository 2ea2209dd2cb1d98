/**
 * Marks: texts that a tokenizer reads as one token wherever they stand, such as those that end a turn in a chat template. No
 * list of them is ever whole, so the tokenizer is asked. Each token of a text is written again between other characters,
 * many times: a word is cut otherwise in one of these places, and a mark never is. Few words pass for marks, and those are
 * only parted in vain.
 */
import { AlidadeError } from "../../base/errors.ts";
import type { ModelTokenizer } from "../grader.ts";

/** What stands before and behind: characters with which words, numbers and signs make other tokens. */
const neighbours: readonly (readonly [string, string])[] = [
  ["a", "a"],
  ["e", "s"],
  ["1", "1"],
  ["<", ">"],
  ["(", ")"],
  ["[", "]"],
  [".", "e"],
  ["-", "="],
  ["_", "_"],
  ["t", "i"],
  ["s", "n"],
  [",", "r"],
  [";", ";"],
  ['"', '"'],
  ["'", "'"],
  ["/", "/"],
  ["*", "*"],
  ["|", "|"],
  ["{", "}"],
  ["é", "é"],
  ["你", "你"],
  [" ", " "],
  ["\n", "\n"],
];

/** Characters that no text of a work has: fence.ts takes them out. */
const between = "\n\u0001\u0002\u0001\n";

/** `text`: as it is written in a text. */
type WrittenToken = { id: number; text: string };

export class MarkFinder {
  readonly #tokenizer: ModelTokenizer;
  readonly #signal: AbortSignal;
  /** By token; null: it was cut otherwise in one of the places. */
  readonly #marks = new Map<number, string | null>();

  constructor(tokenizer: ModelTokenizer, signal: AbortSignal) {
    this.#tokenizer = tokenizer;
    this.#signal = signal;
  }

  /** The marks that the text has. */
  async marksIn(text: string): Promise<string[]> {
    const ids = [...new Set(await this.#ids(text))];
    const open = ids.filter((id) => !this.#marks.has(id));
    const read = await this.#read(open);
    const marks = await this.#tried(read.flatMap(candidatesOf));
    for (const id of open) this.#marks.set(id, marks.find((mark) => mark.id === id)?.text ?? null);
    return ids.flatMap((id) => this.#marks.get(id) ?? []);
  }

  #ids(text: string): Promise<number[]> {
    return this.#tokenizer.tokenize(text, this.#signal);
  }

  /** The texts of these tokens, with as few questions as may be. */
  async #read(ids: readonly number[]): Promise<WrittenToken[]> {
    if (ids.length === 0) return [];
    const gap = await this.#ids(between);
    const joined = await this.#tokenizer.detokenize(
      ids.flatMap((id) => [...gap, id]),
      this.#signal,
    );
    const [, ...parts] = joined.split(between.trim());
    // A tokenizer that writes these characters otherwise is asked for each.
    if (parts.length !== ids.length)
      return Promise.all(ids.map(async (id) => ({ id, text: await this.#tokenizer.detokenize([id], this.#signal) })));
    return ids.map((id, at) => ({ id, text: (parts[at] as string).replace(/^\n| ?\n$/g, "") }));
  }

  async #tried(candidates: readonly WrittenToken[]): Promise<WrittenToken[]> {
    let left = candidates;
    // Again until nothing changes: a token may also stand somewhere else in the same question.
    for (let before = -1; left.length !== before; ) {
      before = left.length;
      for (const [front, back] of neighbours) {
        if (left.length === 0) return [];
        const found = new Set(await this.#ids(left.map(({ text }) => `${front}${text}${back}`).join("\n")));
        left = left.filter(({ id }) => found.has(id));
      }
    }
    return [...left];
  }
}

/**
 * The spellings under which a tokenizer may read this token's text as the token. A single character cannot be parted, so it
 * has none. Some tokenizers put a space before a token, and some show ▁ as a space.
 */
function candidatesOf({ id, text }: WrittenToken): WrittenToken[] {
  const core = text.trim();
  if ([...core].length < 2) return [];
  const isWord = /^[\p{L}\p{N}'’]+$/u.test(core);
  const written = new Set([core, text.trimStart(), ...(isWord ? [] : [text.trimEnd().replaceAll(" ", "▁")])]);
  return [...written].map((one) => ({ id, text: one }));
}

/** Each round halves what a mark leaves: 2^12 characters are longer than any. */
const mostRounds = 12;

/**
 * The text with a space in the middle of each mark of these tokenizers. Throws `grader_error` where one stands there in a
 * form in which it is not found.
 */
export async function withoutMarks(text: string, tokenizers: readonly ModelTokenizer[], signal: AbortSignal): Promise<string> {
  const finders = tokenizers.map((tokenizer) => new MarkFinder(tokenizer, signal));
  let parted = text;
  for (let round = 0; round < mostRounds; round++) {
    const marks = (await Promise.all(finders.map((finder) => finder.marksIn(parted)))).flat();
    if (marks.length === 0) return parted;
    // The longest first: it may hold others.
    parted = marks.toSorted((a, b) => b.length - a.length).reduce(part, parted);
  }
  throw new AlidadeError(
    "grader_error",
    "the work holds what the judge's tokenizer reads as a token of its template, and it cannot be parted",
  );
}

/** Some tokenizers read a character as another one that means the same. */
function part(text: string, mark: string): string {
  const found = [mark, mark.replaceAll("▁", " "), mark.replaceAll(" ", "▁")].find((one) => text.includes(one));
  if (found === undefined) return text.normalize("NFKC");
  const characters = [...found];
  const middle = Math.floor(characters.length / 2);
  return text.replaceAll(found, `${characters.slice(0, middle).join("")} ${characters.slice(middle).join("")}`);
}
