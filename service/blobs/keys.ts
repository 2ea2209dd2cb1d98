import { AlidadeError } from "../../base/errors.ts";

/** A key is ours, made of ids; anything else could lead out of its place. */
const safeKey = /^[A-Za-z0-9_-]+(?:\/[A-Za-z0-9_-]+){0,3}(?:\.[a-z]+){1,2}$/;

/** Folder below the name of a rollout. While the rollout runs, it holds copies of its session logs. */
export const logsFolder = "logs";

/** Does this file, or this draft of a file, belong to the attempt or an earlier one? `name` is without its folder. */
export const isLogUpTo = (name: string, attempt: number): boolean => Number.parseInt(name, 10) <= attempt;

export const isBlobKey = (word: string): boolean => safeKey.test(word);

const safeName = /^[A-Za-z0-9_-]+\/[A-Za-z0-9_-]+$/;

/** The name of a rollout's blobs. A shorter one would remove those of others. */
export function assertName(name: string): void {
  if (!safeName.test(name)) throw new AlidadeError("internal", `"${name}" is no name of a rollout's blobs`);
}

export function assertKey(key: string): void {
  if (!isBlobKey(key)) throw new AlidadeError("internal", `"${key}" is no key of a blob`);
}
