/** What went wrong while writing down: a full disk, which passes, or anything else. */
import { AlidadeError, messageOf } from "../../base/errors.ts";

export function toStoreError(path: string, error: unknown): AlidadeError {
  if (error instanceof AlidadeError) return error;
  const code = (error as NodeJS.ErrnoException)?.code;
  if (code === "ENOSPC" || code === "EDQUOT")
    return new AlidadeError("store_full", `no space left to record at ${path}: free some space; nothing recorded so far is lost`, {
      cause: error,
    });
  return new AlidadeError("store_error", `cannot write ${path}: ${messageOf(error)}`, { cause: error });
}

export function isFull(error: unknown): boolean {
  return error instanceof AlidadeError && error.code === "store_full";
}
