/**
 * Where the real vLLM of the tests and its model live: outside the work tree, below folders named after the hash of
 * everything that goes into them, so that new pins make a new folder and old ones are used again. `install.sh` computes
 * the same names.
 */
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

export const vllmScripts = import.meta.dirname;

/** The folder with `venv/`; ready when it holds the file `ready`. */
export function vllmPlace(): string {
  return join(cacheFolder(), "vllm", hashOf(["requirements.txt", "stub_cuda.py"]));
}

/** The model that plays by itself (plays.ts), for vLLM and for transformers: float32, with its tokenizer and template. */
export function taughtModel(): string {
  return join(modelsPlace(), "taught");
}

/** null when a server can be started (or one was given in ALIDADE_TEST_VLLM_URL), otherwise why not. */
export async function vllmMissing(): Promise<string | null> {
  if (process.env.ALIDADE_TEST_VLLM_URL) return null;
  if (!existsSync(join(vllmPlace(), "ready"))) return "no vLLM of the pinned versions is installed";
  return existsSync(join(modelsPlace(), "ready")) ? null : "its model was not taught";
}

function modelsPlace(): string {
  return join(vllmPlace(), "models", hashOf(["make_tiny_model.py", "teach.py", "plays.json"]));
}

/** Over the files in this order, as install.sh has it. */
function hashOf(names: string[]): string {
  const hash = createHash("sha256");
  for (const name of names) hash.update(readFileSync(join(vllmScripts, name)));
  return hash.digest("hex").slice(0, 12);
}

function cacheFolder(): string {
  return process.env.ALIDADE_CACHE || join(homedir(), ".cache", "alidade");
}
