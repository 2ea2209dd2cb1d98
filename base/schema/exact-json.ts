/**
 * A reader of JSON text that takes every key from the text itself. Only for text that `JSON.parse` has accepted: errors are
 * not looked for. It does not recurse, so depth costs no call stack.
 */

/** A list or an object that is not closed yet, and the key that waits for its value. */
type Unclosed = { into: unknown[] | Record<string, unknown>; key: string | null };

const words = new Map<string, unknown>([
  ["true", true],
  ["false", false],
  ["null", null],
]);

/** `numberOf`: what a number is, by its text. */
export function readExactly(text: string, numberOf: (source: string) => unknown = Number): unknown {
  const whole: unknown[] = [];
  const open: Unclosed[] = [{ into: whole, key: null }];
  for (let at = 0; at < text.length; ) {
    const top = open.at(-1) as Unclosed;
    const first = text[at] as string;
    if (isBetween(first)) at = endOf(between, text, at);
    else if (first === "{" || first === "[") {
      const into = first === "[" ? [] : {};
      put(top, into);
      open.push({ into, key: null });
      at++;
    } else if (first === "}" || first === "]") {
      open.pop();
      at++;
    } else if (first === '"') {
      const end = endOfString(text, at);
      const word = JSON.parse(text.slice(at, end)) as string;
      if (top.key === null && !Array.isArray(top.into)) top.key = word;
      else put(top, word);
      at = end;
    } else {
      const end = endOf(scalar, text, at);
      const source = text.slice(at, end);
      put(top, words.has(source) ? words.get(source) : numberOf(source));
      at = end;
    }
  }
  return whole[0];
}

function put(top: Unclosed, value: unknown): void {
  if (Array.isArray(top.into)) top.into.push(value);
  // An assignment to __proto__ would set the prototype; JSON.parse makes a key of it.
  else Object.defineProperty(top.into, top.key ?? "", { value, writable: true, enumerable: true, configurable: true });
  top.key = null;
}

/** Behind the closing quotation mark of the string that opens here. */
export function endOfString(text: string, from: number): number {
  for (let at = text.indexOf('"', from + 1); ; at = text.indexOf('"', at + 1)) {
    let escapes = at;
    while (text[escapes - 1] === "\\") escapes--;
    if ((at - escapes) % 2 === 0) return at + 1;
  }
}

/** What stands between values and says nothing here: a whole run at once, for it may be as long as the text. */
const between = /[\s,:]+/y;
const scalar = /[^\s,:\]}]+/y;

function isBetween(character: string): boolean {
  return character === "," || character === ":" || character <= " ";
}

/** `pattern`: a sticky one that matches here. */
function endOf(pattern: RegExp, text: string, from: number): number {
  pattern.lastIndex = from;
  pattern.test(text);
  return pattern.lastIndex;
}
