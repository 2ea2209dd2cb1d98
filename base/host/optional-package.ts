/** Packages that only some users want, and install themselves: optional peer dependencies. */
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { AlidadeError, messageOf } from "../errors.ts";

/**
 * What a package exports. `missing` says what needs it and how it is installed, `param` is the option that asked for it.
 * `from`: where the user stands. Throws `config_invalid`.
 */
export async function loadOptional(
  name: string,
  { missing, param, from = process.cwd() }: { missing: string; param: string; from?: string },
): Promise<Record<string, unknown>> {
  // The user's own choice of package comes before what lies beside us.
  for (const place of [join(from, "package.json"), import.meta.url]) {
    try {
      return await import(pathToFileURL(createRequire(place).resolve(name)).href);
    } catch (error) {
      if (!/cannot find (module|package)/i.test(messageOf(error)))
        throw new AlidadeError("config_invalid", `the package ${name} does not load: ${messageOf(error)}`, { param });
    }
  }
  throw new AlidadeError("config_invalid", missing, { param });
}
