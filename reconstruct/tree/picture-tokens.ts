/**
 * A picture's pads are the same ids whatever it shows, so by ids alone two pictures of one size are one context. In the tree each pad
 * is therefore a number that also says whose it is: contexts with other pictures part there, and a node knows its pictures.
 */
import type { PromptPicture } from "../../base/schema/session-log.ts";

/** Above every id: ids fit into 32 bits. */
const aboveIds = 2 ** 32;

export class MarkedPads {
  readonly #numbers = new Map<string, number>();
  readonly #pictures: Omit<PromptPicture, "start">[] = [];

  /** Prompt tokens from place `from` on, with the pads of its pictures told apart. */
  mark(tokens: readonly number[], media: readonly PromptPicture[], from = 0): number[] {
    const marked = [...tokens];
    for (const { sha256, start, length } of media) {
      if (start < from) continue;
      const number = this.#numberOf(sha256, length);
      // The first pad says that one begins: the same picture may stand twice in a row.
      for (let at = start - from; at < start - from + length; at++)
        marked[at] = (marked[at] as number) + aboveIds * (2 * number + (at === start - from ? 1 : 2));
    }
    return marked;
  }

  /** The ids of marked tokens, and the pictures that begin among them. */
  read(tokens: number[]): { token_ids: number[]; media: PromptPicture[] } {
    const media: PromptPicture[] = [];
    if (this.#pictures.length === 0) return { token_ids: tokens, media };
    const token_ids = tokens.map((token, start) => {
      const mark = Math.floor(token / aboveIds);
      const picture = mark % 2 === 1 ? this.#pictures[(mark - 1) / 2] : undefined;
      if (picture) media.push({ sha256: picture.sha256, start, length: picture.length });
      return idOf(token);
    });
    return { token_ids, media };
  }

  /** Pictures of another length part at their first pad, so that no node ends within one. */
  #numberOf(sha256: string, length: number): number {
    const key = `${sha256} ${length}`;
    const known = this.#numbers.get(key);
    if (known !== undefined) return known;
    this.#numbers.set(key, this.#pictures.length);
    return this.#pictures.push({ sha256, length }) - 1;
  }
}

/** Is the number a pad of a picture whose place is known? */
export function isOfPicture(token: number | undefined): boolean {
  return token !== undefined && token >= aboveIds;
}

/** The id of a token that may be marked. */
export function idOf(token: number): number {
  return token % aboveIds;
}

/** How many of the first `length` tokens are marked alike in two prompts with equal ids: those before the first picture that differs. */
export function markedAlike(one: readonly PromptPicture[], other: readonly PromptPicture[], length: number): number {
  const places = Math.max(one.length, other.length);
  for (let at = 0; at < places; at++) {
    const [mine, theirs] = [one[at], other[at]];
    const start = Math.min(mine?.start ?? length, theirs?.start ?? length);
    if (start >= length) return length;
    const isSame = mine?.sha256 === theirs?.sha256 && mine?.start === theirs?.start && mine?.length === theirs?.length;
    if (!isSame || start + (mine?.length ?? 0) > length) return start;
  }
  return length;
}
