/** A body of NDJSON, checked line by line as it comes: its text is never in memory whole. */
import type { z } from "zod";
import { AlidadeError } from "../../base/errors.ts";
import { complaintOf } from "../../base/schema/complaints/complaint.ts";
import { parseJson } from "../../base/wire/json.ts";

const newline = 10;

/** Lines of white space alone are passed over. Throws `request_invalid` naming the line and its field. */
export async function readLines(pieces: AsyncIterable<Buffer>, schema: z.ZodType): Promise<unknown[]> {
  const values: unknown[] = [];
  const lines = new Lines((line, number) => {
    if (!isBlank(line)) values.push(lineValue(line, number, schema));
  });
  for await (const piece of pieces) lines.add(piece);
  lines.end();
  return values;
}

/** The lines of one body. Told by a call, for a body may be millions of empty ones: a promise or a generator's step for each would take minutes. */
class Lines {
  readonly #tell: (line: Buffer, number: number) => void;
  #number = 0;
  #begun: Buffer[] = [];

  constructor(tell: (line: Buffer, number: number) => void) {
    this.#tell = tell;
  }

  add(piece: Buffer): void {
    let from = 0;
    for (let end = piece.indexOf(newline); end !== -1; end = piece.indexOf(newline, from)) {
      if (end > from) this.#begun.push(piece.subarray(from, end));
      this.end();
      from = end + 1;
    }
    if (from < piece.length) this.#begun.push(piece.subarray(from));
  }

  /** Ends the line that has begun. */
  end(): void {
    this.#number += 1;
    if (this.#begun.length === 0) return;
    const line = this.#begun.length === 1 ? (this.#begun[0] as Buffer) : Buffer.concat(this.#begun);
    this.#begun = [];
    this.#tell(line, this.#number);
  }
}

function isBlank(line: Buffer): boolean {
  return /^\s*$/.test(line.subarray(0, 100).toString());
}

function lineValue(line: Buffer, number: number, schema: z.ZodType): unknown {
  const value = parseJson(line);
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const { path, given, message } = complaintOf(result.error, value);
  throw new AlidadeError("request_invalid", `line ${number}: ${path.join(".") || "the line"} is ${given}: ${message}`, {
    param: path.join(".") || null,
  });
}
