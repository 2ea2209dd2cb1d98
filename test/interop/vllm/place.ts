/** Where the real vLLM of the tests and its model live. */
import { join } from "node:path";
import { cachePlace, hashOf, isReady } from "../place.ts";

export const vllmScripts = import.meta.dirname;

/** The folder with `venv/`; ready when it holds the file `ready`. */
export function vllmPlace(): string {
  return cachePlace("vllm", hashOf(vllmScripts, ["requirements.txt", "stub_cuda.py"]));
}

/** The model that plays by itself (plays.ts), for vLLM and for transformers: float32, with its tokenizer and template. */
export function taughtModel(): string {
  return join(modelsPlace(), "taught");
}

/** null when a server can be started (or one was given in ALIDADE_TEST_VLLM_URL), otherwise why not. */
export async function vllmMissing(): Promise<string | null> {
  if (process.env.ALIDADE_TEST_VLLM_URL) return null;
  if (!isReady(vllmPlace())) return "no vLLM of the pinned versions is installed";
  return isReady(modelsPlace()) ? null : "its model was not taught";
}

function modelsPlace(): string {
  return join(vllmPlace(), "models", hashOf(vllmScripts, ["make_tiny_model.py", "teach.py", "plays.json"]));
}
