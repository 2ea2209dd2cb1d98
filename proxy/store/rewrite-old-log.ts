import { rename, rm } from "node:fs/promises";
import { statedVersion, type Versions } from "../../base/schema/versions/record-versions.ts";
import { Appender } from "./appender.ts";
import { readJsonLines } from "./json-lines.ts";
import { logReader } from "./log-reader.ts";

/**
 * Rewrites a log of the version before as one of today, so that entries of two versions never stand in one file. Lines that
 * cannot be read stay as they are. Does nothing for any other log. The caller is the file's only owner.
 */
export async function rewriteOldLog(path: string, versions: Versions): Promise<void> {
  if (versions.fromBefore === undefined || (await versionOf(path)) !== versions.now - 1) return;
  const draft = `${path}.new`;
  // Left by a process that was killed at this point.
  await rm(draft, { force: true });
  await copyAsOfNow(path, draft, versions);
  await rename(draft, path);
}

async function copyAsOfNow(path: string, draft: string, versions: Versions): Promise<void> {
  const read = logReader(versions);
  await using copy = await Appender.open(draft);
  const lines = readJsonLines(
    path,
    (value) => JSON.stringify(read(value)),
    (line) => line,
  );
  for await (const line of lines) await copy.append(`${line}\n`);
}

async function versionOf(path: string): Promise<number | null> {
  for await (const version of readJsonLines(path, statedVersion, () => null)) return version;
  return null;
}
