/**
 * Reads how many experts a model has. Such a model picks some of its experts for each token. No server reports the number, so it is
 * read from the model's configuration, if that lies on this machine: in the folder, or under the name in Hugging Face's cache.
 */
import { readFile, stat } from "node:fs/promises";
import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";
import { tryJson } from "../../base/schema/read-json.ts";

/** `count` is 0 if the model has none. `row`: how many numbers a token has, experts for each layer; null: unknown. */
export type ModelExperts = { count: number; row: { layers: number; top_k: number } | null };

/** In bytes. The largest models have configurations of 100 kB. */
const largestConfig = 4 * 1024 * 1024;

/** `root`: the folder or the name that the server loaded the model from. Returns null if its configuration cannot be read. */
export async function expertsOf(root: string | null, env: NodeJS.ProcessEnv = process.env): Promise<ModelExperts | null> {
  const folder = root === null ? null : await folderOf(root, env);
  if (folder === null) return null;
  try {
    const file = join(folder, "config.json");
    const found = await stat(file);
    if (!found.isFile() || found.size > largestConfig) return null;
    const config = tryJson(await readFile(file, "utf8"));
    return config !== null && typeof config === "object" ? { count: mostExperts(config), row: rowOf(config) } : null;
  } catch {
    return null;
  }
}

const hubName = /^([\w-][\w.-]*)\/([\w-][\w.-]*)$/;

async function folderOf(root: string, env: NodeJS.ProcessEnv): Promise<string | null> {
  if (isAbsolute(root)) return root;
  const [, owner, name] = hubName.exec(root) ?? [];
  if (owner === undefined) return null;
  const home = env.HF_HOME || join(env.XDG_CACHE_HOME || join(homedir(), ".cache"), "huggingface");
  const model = join(env.HF_HUB_CACHE || join(home, "hub"), `models--${owner}--${name}`);
  const revision = await readFile(join(model, "refs", "main"), "utf8").catch(() => "");
  return /^\w+$/.test(revision) ? join(model, "snapshots", revision) : null;
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

/** Both numbers stand side by side, in the configuration of the part that reads text. */
function rowOf(config: object, depth = 0): ModelExperts["row"] {
  if (depth > deepest) return null;
  const fields = new Map<string, unknown>(Object.entries(config));
  const [layers, top_k] = [fields.get("num_hidden_layers"), fields.get("num_experts_per_tok")];
  if (isCount(layers) && isCount(top_k)) return { layers, top_k };
  for (const value of fields.values()) {
    const row = value !== null && typeof value === "object" ? rowOf(value, depth + 1) : null;
    if (row !== null) return row;
  }
  return null;
}

/** Real models have fewer than 200 layers, and at most some dozen experts a token. */
const most = 4096;

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value > 0 && value <= most;
}
