/** Where the llama.cpp of the tests lives; `install.sh` computes the same name. */
import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

/** The folder from which `node-llama-cpp` resolves. */
export function llamaCppPlace(): string {
  const version = /^version=(\S+)$/m.exec(readFileSync(join(import.meta.dirname, "install.sh"), "utf8"))?.[1] ?? "";
  return join(process.env.ALIDADE_CACHE || join(homedir(), ".cache", "alidade"), "llama-cpp", version);
}

export async function llamaCppMissing(): Promise<string | null> {
  return existsSync(join(llamaCppPlace(), "ready")) ? null : "no node-llama-cpp of the pinned version is installed";
}
