/**
 * The folder of trajectories that a service and its nodes share. A node that writes into another one of the same path would
 * finish rollouts whose trajectories no service can read, so the folder has a file that names its ledger.
 */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { FolderBlobs } from "../../blobs/index.ts";
import { AlidadeError, messageOf } from "../../errors.ts";

const markName = "ledger";

/** A path, or `file://` with one. Throws `config_invalid` for another URL. */
export function folderOf(word: string): string {
  if (word.startsWith("file://")) return fileURLToPath(word);
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(word))
    throw new AlidadeError(
      "config_invalid",
      `--trajectories is ${word}: give a folder that the service and all nodes share, or file:// with it`,
      {
        param: "trajectories",
      },
    );
  return resolve(word);
}

/** For the service. Throws `config_invalid` for the folder of another ledger. */
export async function ownFolder(folder: string, ledger: string): Promise<FolderBlobs> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await writeFile(join(folder, markName), ledger, { flag: "wx", mode: 0o600 }).catch(() => undefined);
  return joinedFolder(folder, ledger);
}

/** For a node. Throws `config_invalid` where it is not the service's. */
export async function joinedFolder(folder: string, ledger: string): Promise<FolderBlobs> {
  const refuse = (why: string) => new AlidadeError("config_invalid", `--trajectories is ${folder}: ${why}`, { param: "trajectories" });
  const found = await readFile(join(folder, markName), "utf8").catch((error: unknown) => {
    throw refuse(
      `it is not the folder of a service that was started (${messageOf(error)}): name the one of \`alidade service\`, on a disk that both see`,
    );
  });
  if (found !== ledger) throw refuse(`it has trajectories of the ledger ${found.slice(0, 40)}, and this is ${ledger}: name another folder`);
  return new FolderBlobs(folder);
}
