/** Which rows of a SQLite database are committed, by the files that stand beside it. */
import type { DatabaseFiles } from "../bounded/changed-rows.ts";
import { type FileContent, mostBytes } from "../work/layer-contents.ts";
import type { ServiceFile, ServiceFiles } from "../work/service-files.ts";

/** A file, and what SQLite keeps beside it: the log of commits that are not in it yet, and the journal that takes changes back. */
export type DatabaseRead = { content: FileContent; log: FileContent; journal: FileContent };

export function databaseOf(services: ServiceFiles, when: "before" | "after", { service, file }: ServiceFile): DatabaseRead {
  const at = (path: string) => services[when]({ service, file: path });
  return { content: at(file), log: at(`${file}-wal`), journal: at(`${file}-journal`) };
}

/** How a rollback journal begins whose transaction has not ended (SQLite's file format, part 3). */
const hotJournal = Buffer.from("d9d505f920a163d7", "hex");

/**
 * Why the file does not say which rows are committed; null if it does. A journal is not played back: it comes from the agent's
 * services, and it may name other files to be removed.
 */
export function whyNotCommitted({ log, journal }: DatabaseRead): string | null {
  if (log === "too large" || journal === "too large") return `the files beside the database have more than ${mostBytes} bytes`;
  const isHot = journal?.subarray(0, hotJournal.length).equals(hotJournal) === true;
  return isHot ? "a transaction on it had not ended (its -journal is there): commit, or roll back" : null;
}

/** The files to compare, and why they do not say what is committed. null: the database is not there, or too large. */
export function committedFiles(read: DatabaseRead): (DatabaseFiles & { why: string | null }) | null {
  const { content, log } = read;
  return Buffer.isBuffer(content) ? { content, log: Buffer.isBuffer(log) ? log : null, why: whyNotCommitted(read) } : null;
}
