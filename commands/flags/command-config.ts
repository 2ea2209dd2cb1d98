import type { Config } from "../../config.ts";
import { loadConfig } from "../../load-config.ts";
import { terminal } from "../terminal.ts";
import { sayUnknownVariables } from "./unknown-variables.ts";

/**
 * The configuration of a command: its own defaults, the file, the terminal's variables and the flags; the later ones win. Says
 * which variables do nothing. Throws `config_invalid`.
 */
export async function commandConfig(
  file: string | undefined,
  { defaults, overrides }: { defaults?: Record<string, unknown>; overrides?: Record<string, unknown> } = {},
): Promise<Config> {
  const config = await loadConfig({ env: terminal().env, file, defaults, overrides });
  sayUnknownVariables(config);
  return config;
}
