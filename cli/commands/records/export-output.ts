/**
 * The output of an export. A file is written under another name and renamed when it is complete, so a failed export keeps
 * the older file. A pipe or a device is written directly.
 */
import { createWriteStream, type Stats } from "node:fs";
import { access, constants, lstat, open, realpath, rename, rm, stat } from "node:fs/promises";
import type { Writable } from "node:stream";
import { privateFileMode } from "../../../proxy/store/index.ts";
import { terminal } from "../terminal.ts";

/** Its end removes what was not kept. */
export type ExportOutput = AsyncDisposable & { readonly stream: Writable; keep(): Promise<void> };

export async function openOutput(out: string | undefined): Promise<ExportOutput> {
  if (out === undefined) return asItIs(terminal().stdout);
  const [named, older] = await Promise.all([lstat(out).catch(() => null), stat(out).catch(() => null)]);
  // `/dev/stdout` may be a file of the shell's (`>> rows.jsonl`), which nothing may take the place of; a link into nowhere stays a link.
  if (/^\/(dev|proc)\//.test(out) || (named !== null && !older?.isFile())) return asItIs(createWriteStream(out, { mode: privateFileMode }));
  return beside(older === null ? out : await realpath(out), older);
}

function asItIs(stream: Writable): ExportOutput {
  return { stream, keep: async () => undefined, [Symbol.asyncDispose]: async () => undefined };
}

async function beside(place: string, older: Stats | null): Promise<ExportOutput> {
  // Where it must not be written it must not be replaced either.
  if (older !== null) await access(place, constants.W_OK);
  // Two exports to one place each stay whole.
  const draft = `${place}.${process.pid}.new`;
  const file = await open(draft, "w", older === null ? privateFileMode : older.mode & 0o777);
  return {
    stream: file.createWriteStream(),
    keep: () => rename(draft, place),
    async [Symbol.asyncDispose]() {
      await file.close();
      await rm(draft, { force: true });
    },
  };
}
