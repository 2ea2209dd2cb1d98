/** Reads a JSON body that somebody else wrote: bounded in bytes and depth, and every fault is the sender's to read. */
import { AlidadeError, messageOf } from "../errors.ts";

/** A context of a million tokens is about 4 MB of text; images in history are what needs the rest. */
const maxBytes = 64 * 1024 * 1024;

/** Tool schemas nest about thirty deep. Whoever walks the value recursively (validation, serialising) must survive it. */
const maxDepth = 256;

/** The value of a JSON text in UTF-8. Throws AlidadeError `request_invalid` (413 where it is too large, else 400). */
export function parseJson(bytes: Uint8Array, limits: { maxBytes?: number; maxDepth?: number } = {}): unknown {
  const byteLimit = limits.maxBytes ?? maxBytes;
  if (bytes.length > byteLimit)
    throw new AlidadeError("request_invalid", `The body has ${bytes.length} bytes; at most ${byteLimit} are read.`, { status: 413 });
  const value = parse(decode(bytes));
  checkDepth(value, limits.maxDepth ?? maxDepth);
  return value;
}

function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (cause) {
    throw new AlidadeError("request_invalid", "The body is not UTF-8.", { cause });
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new AlidadeError("request_invalid", `The body is not JSON: ${messageOf(cause)}`, { cause });
  }
}

/** Walks with a list of its own, for the call stack is what a deep value would break. `JSON.parse` itself does not recurse. */
function checkDepth(value: unknown, limit: number): void {
  let level: unknown[] = [value];
  for (let depth = 0; level.length > 0; depth++) {
    const next: unknown[] = [];
    for (const item of level) {
      if (item === null || typeof item !== "object") continue;
      if (depth === limit) throw new AlidadeError("request_invalid", `The body is nested deeper than ${limit} levels.`);
      for (const child of Array.isArray(item) ? item : Object.values(item))
        if (child !== null && typeof child === "object") next.push(child);
    }
    level = next;
  }
}
