/**
 * A small subset of XML: elements, attributes, comments, CDATA and the predefined entities. A document type is refused, for it
 * could define others.
 *
 * `saxes` reads all of XML, but it is two packages for fifty lines here, and bounds nothing: 3 MB of open elements take it a
 * second and 250 MB. It also refuses control characters, which test runners print into a report's output.
 */

/** `start`, `end`: its place in the text. What stands between two tags is text, comments or CDATA. */
export type Tag = { name: string; closing: boolean; empty: boolean; attributes: Map<string, string>; start: number; end: number };

/**
 * The tags in order; null where the text is no XML of the subset. Linear in the text, and attributes are bounded: of
 * millions the stack would overflow.
 */
export function* tagsOf(text: string): Generator<Tag | null> {
  const token =
    /<!--[\s\S]*?-->|<!\[CDATA\[[\s\S]*?\]\]>|<\?[\s\S]*?\?>|<(\/?)([A-Za-z_][\w.:-]*)((?:\s+[\w.:-]+\s*=\s*(?:"[^"<]*"|'[^'<]*')){0,1000})\s*(\/?)>/y;
  let at = text.indexOf("<");
  while (at !== -1) {
    token.lastIndex = at;
    const found = token.exec(text);
    if (!found) return yield null;
    if (found[2] !== undefined) {
      const attributes = readAttributes(found[3] ?? "");
      yield { name: found[2], closing: found[1] === "/", empty: found[4] === "/", attributes, start: at, end: token.lastIndex };
    }
    at = text.indexOf("<", token.lastIndex);
  }
}

function readAttributes(text: string): Map<string, string> {
  const attributes = new Map<string, string>();
  for (const found of text.matchAll(/([\w.:-]+)\s*=\s*(?:"([^"]*)"|'([^']*)')/g)) {
    attributes.set(found[1] as string, decodeEntities(found[2] ?? found[3] ?? ""));
  }
  return attributes;
}

const entities = new Map([
  ["lt", "<"],
  ["gt", ">"],
  ["amp", "&"],
  ["quot", '"'],
  ["apos", "'"],
]);

export function decodeEntities(text: string): string {
  return text.replace(/&(?:#(\d{1,7})|#x([0-9a-fA-F]{1,6})|(\w{1,8}));/g, (whole, decimal?: string, hex?: string, name?: string) => {
    if (name !== undefined) return entities.get(name) ?? whole;
    const point = decimal !== undefined ? Number(decimal) : Number.parseInt(hex as string, 16);
    return point <= 0x10ffff ? String.fromCodePoint(point) : whole;
  });
}
