/** Finding one's way in a text of JSON without parsing it. */
const [quote, backslash, comma, colon, openBracket, openBrace] = [0x22, 0x5c, 0x2c, 0x3a, 0x5b, 0x7b];

/** From an opening quotation mark to behind the closing one. */
export function skipString(bytes: Buffer, from: number): number {
  // The native search reads a long text thirty times as fast as a loop here.
  for (let at = bytes.indexOf(quote, from + 1); at !== -1; at = bytes.indexOf(quote, at + 1)) {
    let escapes = at;
    while (escapes > from + 1 && bytes[escapes - 1] === backslash) escapes--;
    if ((at - escapes) % 2 === 0) return at + 1;
  }
  return bytes.length;
}

/**
 * How many values a text of JSON has at most: one for each bracket that opens and each comma and colon outside of
 * strings. Of a text with more than `limit` of them no more are counted.
 */
export function valuesIn(bytes: Buffer, limit = Number.POSITIVE_INFINITY): number {
  let values = 1;
  for (let at = 0; at < bytes.length && values <= limit; ) {
    const byte = bytes[at] as number;
    if (byte === quote) at = skipString(bytes, at);
    else {
      at++;
      if (byte === comma || byte === colon || byte === openBracket || byte === openBrace) values++;
    }
  }
  return values;
}
