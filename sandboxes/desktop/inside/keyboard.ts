/** Presses keys: by their names, and for text by the characters that they write. */
import { fake, type XClient } from "./x-client.ts";

/** Names of keys by their keysyms: those of X, and what models write in their place. */
const named: Record<string, number> = {
  return: 0xff0d,
  enter: 0xff0d,
  tab: 0xff09,
  escape: 0xff1b,
  esc: 0xff1b,
  backspace: 0xff08,
  delete: 0xffff,
  insert: 0xff63,
  space: 0x20,
  home: 0xff50,
  end: 0xff57,
  left: 0xff51,
  up: 0xff52,
  right: 0xff53,
  down: 0xff54,
  page_up: 0xff55,
  pageup: 0xff55,
  prior: 0xff55,
  page_down: 0xff56,
  pagedown: 0xff56,
  next: 0xff56,
  menu: 0xff67,
  plus: 0x2b,
  minus: 0x2d,
  ctrl: 0xffe3,
  control: 0xffe3,
  shift: 0xffe1,
  alt: 0xffe9,
  super: 0xffeb,
  meta: 0xffeb,
  cmd: 0xffeb,
  ...Object.fromEntries(Array.from({ length: 12 }, (_, index) => [`f${index + 1}`, 0xffbe + index])),
};
const names = new Map(Object.entries(named));

const shiftKeysym = named.shift as number;

/** How long programs may take to read a changed map of keys before one of these is pressed. */
const mapMs = 30;

type Key = { keycode: number; isShifted: boolean };

export class Keyboard {
  readonly #client: XClient;
  readonly #keys = new Map<number, Key>();
  /** Keycodes without a key, which get the characters that no key has. The one that was used longest ago is taken first. */
  readonly #spare: number[] = [];
  readonly #lent = new Map<number, number>();

  private constructor(client: XClient) {
    this.#client = client;
  }

  static async open(client: XClient): Promise<Keyboard> {
    const keyboard = new Keyboard(client);
    for (const [index, [plain = 0, shifted = 0]] of (await client.keyboard()).entries()) {
      const keycode = client.keycodes.first + index;
      if (plain === 0 && shifted === 0) keyboard.#spare.push(keycode);
      if (plain !== 0 && !keyboard.#keys.has(plain)) keyboard.#keys.set(plain, { keycode, isShifted: false });
      if (shifted !== 0 && !keyboard.#keys.has(shifted)) keyboard.#keys.set(shifted, { keycode, isShifted: true });
    }
    return keyboard;
  }

  /** Presses keys together, as in `ctrl+shift+t`. Throws for a name that is no key. */
  async press(combination: string): Promise<void> {
    const keysyms = splitKeys(combination).map((name) => keysymOf(name));
    const keys: Key[] = [];
    for (const keysym of keysyms) keys.push(await this.#keyOf(keysym));
    const codes = [...(keys.some(({ isShifted }) => isShifted) ? [this.#shift] : []), ...keys.map(({ keycode }) => keycode)];
    for (const code of codes) this.#client.send(fake.keyDown, code);
    for (const code of codes.reverse()) this.#client.send(fake.keyUp, code);
    await this.#client.flush();
  }

  /** A line break is the Return key, a tab the Tab key. */
  async type(text: string): Promise<void> {
    for (const character of text.replaceAll("\r\n", "\n")) {
      const { keycode, isShifted } = await this.#keyOf(keysymOfCharacter(character));
      if (isShifted) this.#client.send(fake.keyDown, this.#shift);
      this.#client.send(fake.keyDown, keycode);
      this.#client.send(fake.keyUp, keycode);
      if (isShifted) this.#client.send(fake.keyUp, this.#shift);
      await this.#client.flush();
    }
  }

  get #shift(): number {
    return this.#keys.get(shiftKeysym)?.keycode ?? 0;
  }

  async #keyOf(keysym: number): Promise<Key> {
    const known = this.#keys.get(keysym);
    if (known) return known;
    const lent = this.#lent.get(keysym);
    if (lent !== undefined) return { keycode: lent, isShifted: false };
    const keycode = this.#spare.shift();
    if (keycode === undefined) throw new Error("the keyboard has no free key");
    this.#spare.push(keycode);
    for (const [other, code] of this.#lent) if (code === keycode) this.#lent.delete(other);
    this.#lent.set(keysym, keycode);
    this.#client.setKey(keycode, keysym);
    await this.#client.flush();
    await new Promise((resolve) => setTimeout(resolve, mapMs));
    return { keycode, isShifted: false };
  }
}

/** `+` is between keys, and a key itself where it is the last character. */
function splitKeys(combination: string): string[] {
  const keys = combination.split("+");
  if (combination.endsWith("+") && keys.length >= 2) keys.splice(-2, 2, "+");
  return keys.map((key) => (key.length > 1 ? key.trim() : key));
}

function keysymOf(name: string): number {
  const keysym = [...name].length === 1 ? keysymOfCharacter(name) : names.get(name.toLowerCase());
  if (keysym === undefined)
    throw new Error(`${JSON.stringify(name.slice(0, 40))} is no key: use a character or one of ${[...names.keys()].join(", ")}`);
  return keysym;
}

/** As X numbers them: Latin-1 by itself, all others by their code point above a mark. */
function keysymOfCharacter(character: string): number {
  if (character === "\n") return named.return as number;
  if (character === "\t") return named.tab as number;
  const code = character.codePointAt(0) as number;
  if (code < 0x20 || (code >= 0x7f && code < 0xa0)) throw new Error(`the text has the control character ${code}: press a key instead`);
  return code < 0x100 ? code : 0x01000000 + code;
}
