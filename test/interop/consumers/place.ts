/**
 * Where the trainers of the tests live: outside the work tree, below a folder named after the hash of everything that
 * goes into it. `install.sh` computes the same name.
 */
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

export const consumerScripts = import.meta.dirname;

/** The files that decide what is installed, in the order in which install.sh hashes them. */
const ingredients = ["requirements.txt", "../vllm/stub_cuda.py"];

/** The folder with `venv/`; ready when it holds the file `ready`. */
export function consumersPlace(): string {
  const hash = createHash("sha256");
  for (const name of ingredients) hash.update(readFileSync(join(consumerScripts, name)));
  return join(process.env.ALIDADE_CACHE || join(homedir(), ".cache", "alidade"), "consumers", hash.digest("hex").slice(0, 12));
}

/** null when the trainers are installed, otherwise why not. */
export async function consumersMissing(): Promise<string | null> {
  return existsSync(join(consumersPlace(), "ready")) ? null : "the trainers of the pinned versions are not installed";
}
