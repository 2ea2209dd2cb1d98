/** Where the llama.cpp of the tests lives; `install.sh` computes the same name. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { cachePlace, isReady } from "../place.ts";

/** The folder from which `node-llama-cpp` resolves. */
export function llamaCppPlace(): string {
  const version = /^version=(\S+)$/m.exec(readFileSync(join(import.meta.dirname, "install.sh"), "utf8"))?.[1] ?? "";
  return cachePlace("llama-cpp", version);
}

export async function llamaCppMissing(): Promise<string | null> {
  return isReady(llamaCppPlace()) ? null : "no node-llama-cpp of the pinned version is installed";
}
