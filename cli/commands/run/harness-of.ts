/** The harness that a configuration names, or makes of a command. */

import type { Harness } from "../../../harnesses/index.ts";
import { commandHarness, harnessRegistry } from "../../../harnesses/index.ts";
import type { Config } from "../../config.ts";

export async function harnessOf({ harness }: Config): Promise<Harness> {
  if (typeof harness === "string") return harnessRegistry.load(harness);
  const { command: argv, env, makes, dialects, files: given, python = null, python_version, node = null, folder = process.cwd() } = harness;
  const files = [given].flat();
  const isPacked = files.length > 0 || python !== null || node !== null;
  return commandHarness({ argv, env, makes, dialects, ...(isPacked && { own: { folder, files, python, python_version, node } }) });
}
