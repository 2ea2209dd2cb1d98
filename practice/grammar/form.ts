/** Forms of text, as regular expressions over bytes: what a grammar holds an answer to. */

/** `text`: these bytes; `one`: one of these characters, all of them ASCII; `each`: one after the other. */
export type TextForm =
  | { text: string }
  | { one: string }
  | { each: readonly TextForm[] }
  | { any: readonly TextForm[] }
  | { repeat: TextForm; from: number; to: number };

/** One state: the bytes that lead on, or other states that it stands for. No `bytes` and no `next`: the end. */
type State = { bytes: Uint8Array | null; next: number[] };

/** States of one form. The states that a text may have reached are a sorted list, for it is the key of what is known. */
export class FormStates {
  readonly #states: State[] = [{ bytes: null, next: [] }];
  readonly #steps = new Map<string, readonly number[]>();
  readonly start: readonly number[];

  /** Throws RangeError where the form has more than `most` states. */
  constructor(form: TextForm, most = 100_000) {
    this.start = this.#closure([this.#build(form, 0, most)]);
  }

  /** None: no text of the form goes on with this byte. */
  step(from: readonly number[], byte: number): readonly number[] {
    const key = `${byte}:${from.join()}`;
    const known = this.#steps.get(key);
    if (known) return known;
    const reached = this.#closure(
      from.flatMap((at) => {
        const state = this.#states[at] as State;
        return state.bytes?.[byte] === 1 ? state.next : [];
      }),
    );
    this.#steps.set(key, reached);
    return reached;
  }

  isEnd(at: readonly number[]): boolean {
    return at.includes(0);
  }

  /** Built from its end: each part knows the state that comes behind it. */
  #build(form: TextForm, behind: number, most: number): number {
    if ("text" in form) return [...Buffer.from(form.text)].reduceRight((next, byte) => this.#add(only([byte]), [next], most), behind);
    if ("one" in form) return this.#add(only([...Buffer.from(form.one)]), [behind], most);
    if ("each" in form) return form.each.reduceRight((next, part) => this.#build(part, next, most), behind);
    if ("any" in form)
      return this.#add(
        null,
        form.any.map((part) => this.#build(part, behind, most)),
        most,
      );
    let next = behind;
    for (let count = form.to; count > 0; count--) {
      const more = this.#build(form.repeat, next, most);
      next = count > form.from ? this.#add(null, [more, behind], most) : more;
    }
    return next;
  }

  #add(bytes: Uint8Array | null, next: number[], most: number): number {
    if (this.#states.length >= most) throw new RangeError(`the form has more than ${most} states`);
    return this.#states.push({ bytes, next }) - 1;
  }

  #closure(from: readonly number[]): readonly number[] {
    const found = new Set<number>();
    const open = [...from];
    for (let at = open.pop(); at !== undefined; at = open.pop()) {
      const state = this.#states[at] as State;
      if (state.bytes === null && at !== 0) open.push(...state.next);
      else found.add(at);
    }
    return [...found].sort((a, b) => a - b);
  }
}

function only(bytes: readonly number[]): Uint8Array {
  const allowed = new Uint8Array(256);
  for (const byte of bytes) allowed[byte] = 1;
  return allowed;
}
