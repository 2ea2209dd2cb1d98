/** Flags of `alidade export` that formats bring with them, made from the schemas of their options. */
import { type Command, Option } from "commander";
import { z } from "zod";
import { AlidadeError } from "../errors.ts";
import { type Exporter, exporters } from "../exporters/index.ts";
import { toNumber } from "./command-line.ts";

type OwnOption = { key: string; type: string; description: string; values: string[] | null; formats: string[] };

/** One flag for each option that some format has; formats that share an option share its flag. */
export function addOwnFlags(command: Command): void {
  for (const { key, type, description, values, formats } of ownOptions()) {
    const flag = `--${key.replaceAll("_", "-")}${type === "boolean" ? "" : ` <${type}>`}`;
    const option = new Option(flag, `${description} (${formats.join(", ")})`);
    command.addOption(values === null ? option : option.choices(values));
  }
}

/** The format's own options as its schema reads them. Throws `config_invalid` for a flag that this format does not have. */
export function ownOptionsOf(exporter: Exporter, flags: Record<string, unknown>): Record<string, unknown> {
  const own: Record<string, unknown> = {};
  for (const { key, type, formats } of ownOptions()) {
    const given = flags[toCamelCase(key)];
    if (given === undefined) continue;
    if (!formats.includes(exporter.name))
      throw new AlidadeError("config_invalid", `--${key.replaceAll("_", "-")} is for ${formats.join(", ")}, not for ${exporter.name}`, {
        param: key,
      });
    own[key] = type === "number" || type === "integer" ? toNumber(String(given)) : given;
  }
  return own;
}

function ownOptions(): OwnOption[] {
  const found = new Map<string, OwnOption>();
  for (const exporter of exporters)
    for (const [key, field] of Object.entries(exporter.options.shape)) {
      const known = found.get(key) ?? { key, ...describe(field), formats: [] };
      known.formats.push(exporter.name);
      found.set(key, known);
    }
  return [...found.values()];
}

const FieldSchema = z.looseObject({
  type: z.string().default("string"),
  description: z.string().default(""),
  default: z.unknown().optional(),
  enum: z.array(z.string()).optional(),
});

function describe(field: z.core.$ZodType): Pick<OwnOption, "type" | "description" | "values"> {
  const { type, description, enum: values, ...rest } = FieldSchema.parse(z.toJSONSchema(field, { io: "input" }));
  const preset = rest.default === undefined || rest.default === false ? "" : `; default ${String(rest.default)}`;
  return { type, description: `${description}${preset}`, values: values ?? null };
}

function toCamelCase(key: string): string {
  return key.replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase());
}
