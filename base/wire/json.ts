/** Reads a JSON body from outside: bounded in bytes and depth. Each error message is for the sender. */
import { isUtf8 } from "node:buffer";
import { AlidadeError, messageOf } from "../errors.ts";
import { nestsWithin } from "../schema/json-depth.ts";
import { readJson } from "../schema/read-json.ts";
import { restoreNumbers, type Verbatim } from "./written-numbers.ts";

/** A context of a million tokens is about 4 MB of text; images in history are what needs the rest. */
const maxBytes = 64 * 1024 * 1024;

/** Tool schemas nest about thirty deep. Recursive readers (validation, serialising) must survive the limit. */
const maxDepth = 256;

/** Some clients write one in front of what is UTF-8 anyway. */
const byteOrderMark = 0xfeff;

/**
 * The value of a JSON text in UTF-8. `verbatim`: where numbers are kept as they were written. Throws AlidadeError
 * `request_invalid` (413 where it is too large, else 400).
 */
export function parseJson(bytes: Uint8Array, limits: { maxBytes?: number; maxDepth?: number; verbatim?: Verbatim } = {}): unknown {
  const byteLimit = limits.maxBytes ?? maxBytes;
  if (bytes.length > byteLimit)
    throw new AlidadeError("request_invalid", `The body has ${bytes.length} bytes; at most ${byteLimit} are read.`, { status: 413 });
  const text = decode(bytes);
  const value = parse(text);
  const depthLimit = limits.maxDepth ?? maxDepth;
  if (!nestsWithin(value, depthLimit)) throw new AlidadeError("request_invalid", `The body is nested deeper than ${depthLimit} levels.`);
  if (limits.verbatim) restoreNumbers(value, text, limits.verbatim);
  return value;
}

function decode(bytes: Uint8Array): string {
  if (!isUtf8(bytes)) throw new AlidadeError("request_invalid", "The body is not UTF-8.");
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
  return text.charCodeAt(0) === byteOrderMark ? text.slice(1) : text;
}

/** `JSON.parse` itself does not recurse. */
function parse(text: string): unknown {
  try {
    return readJson(text);
  } catch (cause) {
    throw new AlidadeError("request_invalid", `The body is not JSON: ${messageOf(cause)}`, { cause });
  }
}
