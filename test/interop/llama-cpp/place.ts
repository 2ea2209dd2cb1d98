/** Where the llama.cpp of the tests lives; `install.sh` computes the same name. */
import { cachePlace, isReady, pinnedVersion } from "../place.ts";

/** The folder from which `node-llama-cpp` resolves. */
export function llamaCppPlace(): string {
  return cachePlace("llama-cpp", pinnedVersion(import.meta.dirname));
}

export async function llamaCppMissing(): Promise<string | null> {
  return isReady(llamaCppPlace()) ? null : "no node-llama-cpp of the pinned version is installed";
}
