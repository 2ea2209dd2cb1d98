import type { Config } from "../../config.ts";
import { type ConfigSources, loadGivenConfig } from "../../load-config.ts";
import { terminal } from "../terminal.ts";
import { sayUnknownVariables } from "./unknown-variables.ts";

/**
 * The configuration of a command: its own defaults, the file, the terminal's variables and the flags; the later ones win. Says
 * which variables do nothing. Throws `config_invalid`.
 */
export async function commandConfig(file: string | undefined, more: Pick<ConfigSources, "defaults" | "overrides"> = {}): Promise<Config> {
  return (await givenCommandConfig(file, more)).config;
}

/** The same, with the keys that were given. */
export async function givenCommandConfig(
  file: string | undefined,
  more: Pick<ConfigSources, "defaults" | "overrides">,
): Promise<{ config: Config; given: string[] }> {
  const found = await loadGivenConfig({ env: terminal().env, file, ...more });
  sayUnknownVariables(found.config);
  return found;
}
