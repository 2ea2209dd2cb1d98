/**
 * Reads how many experts a model has. Such a model picks some of its experts for each token. No server reports the number, so
 * it is read from the model's folder, if the server names a folder of this machine.
 */
import { readFile, stat } from "node:fs/promises";
import { isAbsolute, join } from "node:path";
import { tryJson } from "../../base/schema/read-json.ts";

/** In bytes. The largest models have configurations of 100 kB. */
const largestConfig = 4 * 1024 * 1024;

/** `root`: the folder that the server loaded the model from. Returns null if the number is unknown, 0 if there are no experts. */
export async function expertsOf(root: string | null): Promise<number | null> {
  if (root === null || !isAbsolute(root)) return null;
  try {
    const file = join(root, "config.json");
    const found = await stat(file);
    if (!found.isFile() || found.size > largestConfig) return null;
    const config = tryJson(await readFile(file, "utf8"));
    return config !== null && typeof config === "object" ? mostExperts(config) : null;
  } catch {
    return null;
  }
}

/** A model for text and pictures has these fields deeper in its configuration. */
const names = new Set(["num_experts", "moe_num_experts", "n_routed_experts", "num_local_experts"]);
/** Configurations nest two or three levels deep. */
const deepest = 6;

function mostExperts(config: object, depth = 0): number {
  if (depth > deepest) return 0;
  let most = 0;
  for (const [name, value] of Object.entries(config)) {
    if (names.has(name)) for (const count of [value].flat()) if (Number.isSafeInteger(count)) most = Math.max(most, count);
    if (value !== null && typeof value === "object") most = Math.max(most, mostExperts(value, depth + 1));
  }
  return most;
}
