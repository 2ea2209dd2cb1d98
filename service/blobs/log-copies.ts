/**
 * Copies of session logs. A log lies on the disk of its node. While a rollout runs, the node copies its log to the place of
 * trajectories, part by part. If the node dies, another one continues from the parts. The parts of an attempt have numbers from 1.
 */
import { promisify } from "node:util";
import { constants, zstdCompress, zstdDecompress } from "node:zlib";
import { z } from "zod";
import { AlidadeError, messageOf } from "../../base/errors.ts";
import { readJson } from "../../base/schema/read-json.ts";
import { ResumeRecord } from "../../base/schema/rollout.ts";
import { LogEntry } from "../../base/schema/session-log.ts";
import type { Blobs } from "./blobs.ts";
import { logsFolder } from "./keys.ts";
import { PackedPicture } from "./pictures.ts";

/** Facts about the attempt that its log does not hold. */
export const LogCopyHead = z.strictObject({
  session_id: z.string(),
  harness: z.string(),
  harness_version: z.string().nullable(),
  task_hash: z.string(),
  resume: ResumeRecord.nullable(),
});
export type LogCopyHead = z.infer<typeof LogCopyHead>;

/** `pictures`: without the pictures of earlier parts of the session. */
const LogPart = z.strictObject({ head: LogCopyHead, entries: z.array(LogEntry), pictures: z.array(PackedPicture) });
export type LogPart = z.infer<typeof LogPart>;

export type LogCopy = LogPart;

/** Characters of JSON in all parts together, with pictures. The reader holds them in memory. */
export const longestLogCopy = 128 * 1024 * 1024;

const copyKey = new RegExp(`^[\\w-]+/[\\w-]+/${logsFolder}/\\d{1,9}-\\d{1,9}\\.json\\.zst$`);

export const isLogCopyKey = (word: string): boolean => copyKey.test(word);

/** `entries`: the JSON of the entries, which the caller has read already. Returns the JSON of the part as `text`. */
export function packLogPart(entries: string, { head, pictures }: Omit<LogPart, "entries">): { text: string; pack: () => Promise<Buffer> } {
  const text = `{"head":${JSON.stringify(head)},"entries":${entries},"pictures":${JSON.stringify(pictures)}}`;
  // The checksum finds a damaged part when it is read.
  return { text, pack: () => promisify(zstdCompress)(text, { params: { [constants.ZSTD_c_checksumFlag]: 1 } }) };
}

export const logPartKey = (name: string, attempt: number, part: number): string => `${name}/${logsFolder}/${attempt}-${part}.json.zst`;

/**
 * Returns the copied log of the attempt's last session; null: no part was copied. Throws `store_error` if the place cannot be read
 * or a part is damaged. `patient` ends the wait for a place that does not answer; then its reason is thrown.
 */
export async function readLogCopy(
  blobs: Pick<Blobs, "get" | "place">,
  name: string,
  attempt: number,
  patient?: AbortSignal,
): Promise<LogCopy | null> {
  let copy: LogCopy | null = null;
  let length = 0;
  for (let part = 1; ; part += 1) {
    const key = logPartKey(name, attempt, part);
    const packed = await blobs.get(key, patient);
    if (packed === null) return copy;
    const text = await unpack(key, packed, longestLogCopy - length);
    length += text.length;
    const more = parsed(key, text);
    if (copy === null || copy.head.session_id !== more.head.session_id) copy = more;
    else {
      for (const entry of more.entries) copy.entries.push(entry);
      copy.pictures.push(...more.pictures);
    }
  }
}

async function unpack(key: string, packed: Buffer, most: number): Promise<string> {
  try {
    return (await promisify(zstdDecompress)(packed, { maxOutputLength: Math.max(1, most) * 2 })).toString("utf8");
  } catch (error) {
    throw new AlidadeError("store_error", `the copy ${key} of a session log is damaged or too long: ${messageOf(error)}`, { cause: error });
  }
}

function parsed(key: string, text: string): LogPart {
  const part = LogPart.safeParse(readJson(text));
  if (part.success) return part.data;
  const [issue] = part.error.issues;
  throw new AlidadeError(
    "store_error",
    `the copy ${key} of a session log cannot be read here: ${issue?.path.join(".")}: ${issue?.message}`,
  );
}
