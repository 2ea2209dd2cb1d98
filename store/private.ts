/**
 * Only the user may read records, whatever the umask: they hold all output of agents and models, which may contain secrets.
 * Existing files keep their mode.
 */
import { mkdir } from "node:fs/promises";

export const privateFileMode = 0o600;

/** Makes the folder and those above it that are missing. */
export async function makePrivateFolder(path: string): Promise<void> {
  await mkdir(path, { recursive: true, mode: 0o700 });
}
