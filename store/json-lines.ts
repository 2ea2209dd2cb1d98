/** Reading what an appender wrote: one JSON value a line, one line in memory at a time. */
import { createReadStream } from "node:fs";
import { AlidadeError, messageOf } from "../errors.ts";

/** Large enough that a file of a gigabyte is a thousand reads. */
const blockBytes = 1024 * 1024;
const newline = 10;

/**
 * The values of a JSONL file; none where there is no file. What follows the last newline is the torn line of a killed
 * process and is left out; any other line that does not parse is an error that names the line, for silence there would
 * lose what was recorded.
 */
export async function* readJsonLines<T>(path: string, parse: (value: unknown) => T): AsyncGenerator<T> {
  let number = 0;
  for await (const line of wholeLines(path)) {
    number++;
    if (line === "") continue;
    let value: T;
    try {
      value = parse(JSON.parse(line));
    } catch (error) {
      throw new AlidadeError("store_error", `${path} line ${number} is not a record of ours: ${messageOf(error).slice(0, 300)}`, {
        cause: error,
      });
    }
    yield value;
  }
}

async function* wholeLines(path: string): AsyncGenerator<string> {
  let pieces: Buffer[] = [];
  try {
    for await (const block of createReadStream(path, { highWaterMark: blockBytes }) as AsyncIterable<Buffer>) {
      let start = 0;
      for (let end = block.indexOf(newline); end !== -1; end = block.indexOf(newline, start)) {
        yield Buffer.concat([...pieces, block.subarray(start, end)]).toString("utf8");
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
