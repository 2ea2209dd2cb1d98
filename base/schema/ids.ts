/**
 * Ids. Letters and digits only and at most 40 characters, because harnesses strip or cut anything else (one keeps
 * only alphanumerics and 40 characters). An id is public; a key is a secret of its own.
 */
import { hash, randomBytes, randomFillSync } from "node:crypto";

const alphabet = "0123456789abcdefghijklmnopqrstuvwxyz";

/** `prefix` and 20 random characters (103 bits). */
export function newId(
  prefix: "ses" | "set" | "call" | "roll" | "run" | "tool" | "traj" | "grp" | "conv" | "fence" | "canary" | "salt",
): string {
  // 252 is the largest multiple of 36 below 256: bytes above it would favour the first letters.
  let id = "";
  while (id.length < 20) {
    const byte = randomByte();
    if (byte < 252) id += alphabet[byte % 36];
  }
  return prefix + id;
}

/** Drawn in advance, for to ask for 20 bytes costs as much as to ask for these. Each is used once. */
const drawn = Buffer.alloc(2_048);
let used = drawn.length;

function randomByte(): number {
  if (used === drawn.length) {
    randomFillSync(drawn);
    used = 0;
  }
  return drawn[used++] as number;
}

/** Whether it has the form of a set's id; no folder is called so by chance. */
export function isSetId(text: string): boolean {
  return /^set[0-9a-z]{20}$/.test(text);
}

/** A bearer secret: 32 random bytes. The `sk-` in front is what SDKs and log scrubbers expect of one. */
export function newKey(): string {
  return `sk-ali-${randomBytes(32).toString("base64url")}`;
}

/** What is stored of a key: enough to recognise it, not enough to use it. */
export function hashKey(key: string): string {
  return hash("sha256", key);
}

/** The id that we give a harness for the `index`-th tool call of a call; `toCallId` reads it back. */
export function mintToolCallId(callId: string, index: number): string {
  return `${callId}t${index}`;
}

/** The call and index named by a minted id, or null when the id is not ours. */
export function fromToolCallId(id: string): { call_id: string; index: number } | null {
  const match = /^(call[0-9a-z]{20})t(\d{1,4})$/.exec(id);
  return match ? { call_id: match[1] as string, index: Number(match[2]) } : null;
}

/** Hex sha-256 of the value's canonical JSON (keys sorted), for hashes of tools, tasks and configurations. */
export function hashOf(value: unknown): string {
  return hash("sha256", canonicalJson(value));
}

/** JSON with sorted keys: equal values give equal text. Written out by hand, for every message of every call goes through it. */
export function canonicalJson(value: unknown): string {
  if (value === null || typeof value !== "object") return JSON.stringify(value) ?? "null";
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  const fields = value as Record<string, unknown>;
  const known = Object.keys(fields).filter((key) => fields[key] !== undefined);
  return `{${known
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonicalJson(fields[key])}`)
    .join(",")}}`;
}

/** Makes the `task_hash` of records and ledgers. Tasks with different hashes are different tasks. */
export function hashOfTask(task: object): string {
  return hashOf(task).slice(0, 16);
}
