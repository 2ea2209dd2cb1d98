/**
 * A picture's pads are the same ids whatever it shows, so by ids alone two pictures of one size are one context. In the tree each pad
 * is therefore a number that also says whose it is: contexts with other pictures part there, and a node knows its pictures.
 */
import type { PromptPicture } from "../../base/schema/session-log.ts";
import type { CallHistory } from "../log/call-history.ts";

/** Above every id: ids fit into 32 bits. */
const aboveIds = 2 ** 32;

export class MarkedPads {
  readonly #numbers = new Map<string, number>();
  readonly #pictures: Omit<PromptPicture, "start">[] = [];

  /** The prompt with the pads of its pictures told apart. */
  mark(prompt: readonly number[], media: readonly PromptPicture[]): number[] {
    const marked = [...prompt];
    for (const { sha256, start, length } of media) {
      const number = this.#numberOf(sha256, length);
      // The first pad says that one begins: the same picture may stand twice in a row.
      for (let at = start; at < start + length; at++)
        marked[at] = (marked[at] as number) + aboveIds * (2 * number + (at === start ? 1 : 2));
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
      return token % aboveIds;
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

/** Each prompt whole and marked, by call id; null where no call of the session shows a picture whose place is known. */
export function markedPrompts(calls: readonly CallHistory[], pictures: MarkedPads): Map<string, number[]> | null {
  if (!calls.some(({ finished }) => finished?.media)) return null;
  const byId = new Map(calls.map((call) => [call.call_id, call]));
  const whole = new Map<string, number[]>();
  // A base is earlier in the log, and so in this list.
  for (const { call_id, finished } of [...calls].sort((one, other) => one.begun.ordinal - other.begun.ordinal)) {
    if (!finished?.prompt_ids) continue;
    const { base_call_id, base_len, new: fresh } = finished.prompt_ids;
    const before = whole.get(base_call_id ?? "");
    if (base_call_id !== null && base_len > 0 && before === undefined) continue;
    const base = [...(before ?? []), ...(byId.get(base_call_id ?? "")?.finished?.sampled_ids ?? [])];
    whole.set(call_id, [...base.slice(0, base_len), ...fresh]);
  }
  return new Map([...whole].map(([id, prompt]) => [id, pictures.mark(prompt, byId.get(id)?.finished?.media ?? [])]));
}
