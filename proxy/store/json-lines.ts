/** Reading what an appender wrote: one JSON value a line, one line in memory at a time. */
import { createReadStream } from "node:fs";
import { open } from "node:fs/promises";
import { z } from "zod";
import { AlidadeError, messageOf } from "../../base/errors.ts";
import { complaintOf } from "../../base/schema/complaints/complaint.ts";
import { readJson } from "../../base/schema/read-json.ts";

/** Large enough that a file of a gigabyte is a thousand reads. */
const blockBytes = 1024 * 1024;
const newline = 10;

/** Where a line lies in its file: its number from 1, its first byte, and its bytes with the line end. */
export type LinePlace = { number: number; offset: number; bytes: number };

/**
 * The values of a JSONL file; none where there is no file. What follows the last newline is the torn line of a killed
 * process and is left out; any other line that does not parse is an error that names the line, for silence there would
 * lose what was recorded. Where it is no record of ours, it says so in words, and which version wrote it. `orElse` gives
 * what stands for such a line, so that reading goes on; without it the error is thrown. `from`: the place after which
 * reading begins, of an earlier reading.
 */
export async function* readJsonLines<T>(
  path: string,
  parse: (value: unknown, place: LinePlace) => T,
  orElse?: (line: string, error: AlidadeError, place: LinePlace) => T,
  from: LinePlace = { number: 0, offset: 0, bytes: 0 },
): AsyncGenerator<T> {
  let writer: string | undefined;
  for await (const { line, ...place } of wholeLines(path, from)) {
    const { number } = place;
    if (line === "") continue;
    let value: unknown;
    let record: T;
    try {
      value = readJson(line);
      if (number === 1) writer = writerOf(value);
      record = parse(value, place);
    } catch (error) {
      const why = error instanceof z.ZodError ? foreign(error, value, writerOf(value) ?? writer) : messageOf(error).slice(0, 300);
      const damage = new AlidadeError("store_error", `${path} line ${number} is not a record of ours: ${why}`, { cause: error });
      if (!orElse) throw damage;
      record = orElse(line, damage, place);
    }
    yield record;
  }
}

/** The bytes of a line, without its line end. */
export async function readLine(path: string, { offset, bytes }: LinePlace): Promise<Buffer> {
  await using file = await open(path);
  const length = Math.max(0, bytes - 1);
  const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, offset);
  return buffer.subarray(0, bytesRead);
}

/** Does the file end with a torn line, which `readJsonLines` left out? */
export async function hasTornEnd(path: string): Promise<boolean> {
  await using file = await open(path).catch(() => null);
  const { size } = (await file?.stat()) ?? { size: 0 };
  if (file === null || size === 0) return false;
  const { buffer } = await file.read(Buffer.alloc(1), 0, 1, size - 1);
  return buffer[0] !== newline;
}

/** Logs say it in their first line, trajectories among their fingerprints. */
const Written = z.union([
  z.object({ alidade_version: z.string() }).transform((log) => log.alidade_version),
  z
    .object({ fidelity: z.object({ fingerprints: z.object({ alidade: z.string() }) }) })
    .transform((trajectory) => trajectory.fidelity.fingerprints.alidade),
]);

function writerOf(value: unknown): string | undefined {
  return Written.safeParse(value).data;
}

function foreign(error: z.ZodError, value: unknown, writer: string | undefined): string {
  const { path, given, message, unknownKey } = complaintOf(error, value);
  const what = unknownKey === null ? `${path.join(".") || "it"} is ${given} (${message})` : `it has a ${path.join(".")}, which is ${given}`;
  return `${what}; ${writer === undefined ? "another version of Alidade" : `Alidade ${writer}`} may have written it`;
}

async function* wholeLines(path: string, from: LinePlace): AsyncGenerator<LinePlace & { line: string }> {
  let pieces: Buffer[] = [];
  let { number } = from;
  let offset = from.offset + from.bytes;
  try {
    for await (const block of createReadStream(path, { highWaterMark: blockBytes, start: offset }) as AsyncIterable<Buffer>) {
      let start = 0;
      for (let end = block.indexOf(newline); end !== -1; end = block.indexOf(newline, start)) {
        const line = Buffer.concat([...pieces, block.subarray(start, end)]);
        const bytes = line.length + 1;
        yield { line: line.toString("utf8"), number: ++number, offset, bytes };
        offset += bytes;
        pieces = [];
        start = end + 1;
      }
      if (start < block.length) pieces.push(block.subarray(start));
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return;
    throw new AlidadeError("store_error", `cannot read ${path}: ${messageOf(error)}`, { cause: error });
  }
}
