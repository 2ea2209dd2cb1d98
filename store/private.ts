/**
 * Records are their user's alone, whatever the umask: they hold all that agents and models said, which may be secrets of
 * the machine. What is there already keeps the mode that its owner gave it.
 */
import { mkdir } from "node:fs/promises";

export const privateFileMode = 0o600;

/** Makes the folder and those above it that are missing. */
export async function makePrivateFolder(path: string): Promise<void> {
  await mkdir(path, { recursive: true, mode: 0o700 });
}
