/** Flags of `alidade export` that formats bring with them, made from the schemas of their options. */
import type { Command } from "commander";
import { AlidadeError } from "../../../base/errors.ts";
import { type Exporter, exporters } from "../../../exporters/index.ts";
import { numberIn } from "../command-line.ts";
import { describeField, type FieldFlag, flagKey, toFlag } from "./schema-flags.ts";

type OwnOption = FieldFlag & { key: string; formats: string[] };

/** One flag for each option that some format has; formats that share an option share its flag. */
export function addOwnFlags(command: Command): void {
  for (const { key, formats, ...field } of ownOptions())
    command.addOption(toFlag(key, { ...field, description: `${field.description} (${formats.join(", ")})` }));
}

/** The format's own options as its schema reads them. Throws `config_invalid` for a flag that this format does not have. */
export function ownOptionsOf(exporter: Exporter, flags: Record<string, unknown>): Record<string, unknown> {
  const own: Record<string, unknown> = {};
  for (const { key, type, formats } of ownOptions()) {
    const given = flags[flagKey(key)];
    if (given === undefined) continue;
    if (!formats.includes(exporter.name))
      throw new AlidadeError("config_invalid", `--${key.replaceAll("_", "-")} is for ${formats.join(", ")}, not for ${exporter.name}`, {
        param: key,
      });
    own[key] = type === "number" || type === "integer" ? numberIn(String(given)) : given;
  }
  return own;
}

function ownOptions(): OwnOption[] {
  const found = new Map<string, OwnOption>();
  for (const exporter of exporters)
    for (const [key, field] of Object.entries(exporter.options.shape)) {
      const flag = describeField(field);
      if (flag === null) continue;
      const known = found.get(key) ?? { key, ...flag, formats: [] };
      known.formats.push(exporter.name);
      found.set(key, known);
    }
  return [...found.values()];
}
