/**
 * Where the real vLLM of the tests lives: outside the work tree, below a folder named after the hash of everything that
 * goes into it, so that new pins make a new folder and old ones are used again. `install.sh` computes the same name.
 */
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

export const vllmScripts = import.meta.dirname;

/** The files that decide what is installed, in the order in which install.sh hashes them. */
const ingredients = ["requirements.txt", "stub_cuda.py", "make_tiny_model.py"];

/** The folder with `venv/` and `tiny-qwen2/`; ready when it holds the file `ready`. */
export function vllmPlace(): string {
  const hash = createHash("sha256");
  for (const name of ingredients) hash.update(readFileSync(join(vllmScripts, name)));
  return join(cacheFolder(), "vllm", hash.digest("hex").slice(0, 12));
}

/** null when a server can be started (or one was given in ALIDADE_TEST_VLLM_URL), otherwise why not. */
export async function vllmMissing(): Promise<string | null> {
  if (process.env.ALIDADE_TEST_VLLM_URL) return null;
  return existsSync(join(vllmPlace(), "ready")) ? null : "no vLLM of the pinned versions is installed";
}

function cacheFolder(): string {
  return process.env.ALIDADE_CACHE || join(homedir(), ".cache", "alidade");
}
