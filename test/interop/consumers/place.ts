/** Where the trainers of the tests live. */
import { cachePlace, hashOf, isReady } from "../place.ts";

export const consumerScripts = import.meta.dirname;

/** The files that decide what is installed, in the order in which install.sh hashes them. */
const ingredients = ["requirements.txt", "../vllm/stub_cuda.py"];

/** The folder with `venv/`; ready when it holds the file `ready`. */
export function consumersPlace(): string {
  return cachePlace("consumers", hashOf(consumerScripts, ingredients));
}

/** null when the trainers are installed, otherwise why not. */
export async function consumersMissing(): Promise<string | null> {
  return isReady(consumersPlace()) ? null : "the trainers of the pinned versions are not installed";
}
