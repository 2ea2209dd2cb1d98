/**
 * Only the user may read records, whatever the umask: they hold all output of agents and models, which may contain secrets.
 * Existing files keep their mode.
 */
import { mkdir, rename, writeFile } from "node:fs/promises";
import { toStoreError } from "./store-error.ts";

export const privateFileMode = 0o600;

/** Makes the folder and those above it that are missing. */
export async function makePrivateFolder(path: string): Promise<void> {
  await mkdir(path, { recursive: true, mode: 0o700 });
}

/** For one writer at a time. A reader, and a process that dies meanwhile, has the old text or the new one, whole. Throws `store_error`, `store_full`. */
export async function replacePrivateFile(path: string, text: string): Promise<void> {
  const draft = `${path}.new`;
  try {
    await writeFile(draft, text, { mode: privateFileMode });
    await rename(draft, path);
  } catch (error) {
    throw toStoreError(path, error);
  }
}
