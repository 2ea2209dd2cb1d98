/**
 * Secrets of this process, and texts without them. Servers and vendors repeat a key in their errors, and an error reaches
 * the client, the records and the terminal.
 */

/** Shorter ones are placeholders (`EMPTY`, `none`), and stand in ordinary words. */
const shortestSecret = 6;
/** So many characters of a key in a row are no chance. Texts are cut off somewhere, so a part of a key is hidden too. */
const tellingLength = 12;

/** Pieces of every form of every secret, by their length. */
const pieces = new Map<number, Set<string>>();

/** From now on `hideSecrets` knows it. */
export function keepSecret(secret: string): void {
  if (secret.length < shortestSecret) return;
  for (const form of formsOf(secret)) {
    const length = Math.min(form.length, tellingLength);
    const known = pieces.get(length) ?? new Set();
    pieces.set(length, known);
    for (let at = 0; at + length <= form.length; at++) known.add(form.slice(at, at + length));
  }
}

/** A session's key (`newKey`), and the user and password of a URL: known by their form. */
const byForm = /sk-ali-[\w-]{8,}|(?<=:\/\/)[^\s/@"']+(?=@)/g;

/**
 * The text with `[redacted]` for every secret in it, also in URL, JSON or base64 encoding, or cut off. For a server's words
 * about a failure; a model's output is never changed.
 */
export function hideSecrets(text: string): string {
  const hidden: [start: number, end: number][] = [];
  for (const [length, known] of pieces)
    for (let at = 0; at + length <= text.length; at++) if (known.has(text.slice(at, at + length))) hidden.push([at, at + length]);
  let [shown, end] = ["", 0];
  for (const [from, to] of hidden.sort(([a], [b]) => a - b)) {
    if (from > end || end === 0) shown += text.slice(end, from) + redacted;
    end = Math.max(end, to);
  }
  return (shown + text.slice(end)).replace(byForm, redacted);
}

const redacted = "[redacted]";

function formsOf(secret: string): Set<string> {
  const inJson = JSON.stringify(secret).slice(1, -1);
  const inUrl = encodeURIComponent(secret);
  const escaped = (digits: (code: string) => string): string =>
    secret.replace(/[^0-9a-z]/gi, (char) => `\\u${digits(char.charCodeAt(0).toString(16).padStart(4, "0"))}`);
  return new Set([
    secret,
    inUrl,
    inUrl.replace(/%../g, (code) => code.toLowerCase()),
    inJson,
    // An error in an error, and two spellings of the same JSON.
    JSON.stringify(inJson).slice(1, -1),
    inJson.replaceAll("/", "\\/"),
    escaped((code) => code),
    escaped((code) => code.toUpperCase()),
    ...[0, 1, 2].flatMap((before) => base64Of(secret, before)),
  ]);
}

/** What base64 makes of it behind so many bytes (a user's name in `Basic …`): the characters that no neighbour has a part in. */
function base64Of(secret: string, before: number): string[] {
  const bytes = Buffer.from("\0".repeat(before) + secret);
  const text = bytes.toString("base64").slice(Math.ceil((before * 8) / 6), Math.floor((bytes.length * 8) / 6));
  return text.length < shortestSecret ? [] : [text, text.replaceAll("+", "-").replaceAll("/", "_")];
}
