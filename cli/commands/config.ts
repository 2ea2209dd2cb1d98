/** `alidade config`: what a configuration comes to, and its manual. */
import type { Command } from "commander";
import { stringify } from "yaml";
import { configSchema } from "../config.ts";
import { scalarPaths } from "../load-config.ts";
import { print } from "./command-line.ts";
import { commandConfig } from "./flags/command-config.ts";

export function config(program: Command): void {
  program
    .command("config")
    .description("Prints what file and environment come to. `--schema` prints every key with its meaning, default and unit as JSON Schema.")
    .option("-c, --config <file>", "YAML file to read")
    .option("--schema", "print the schema")
    .option("--variables", "print the environment variable of every key that has one")
    .option("--json", "print JSON instead of YAML")
    .addHelpText(
      "after",
      "\nExamples:\n  alidade config --config run.yaml     what a run with this file would use\n  alidade config --schema              every key with its meaning\n  ALIDADE_SAMPLES=8 alidade config      environment variables go over the file",
    )
    .action(async (flags: { config?: string; schema?: boolean; variables?: boolean; json?: boolean }) => {
      if (flags.variables) {
        const names = Object.fromEntries(scalarPaths().map((path) => [`ALIDADE_${path.join("_").toUpperCase()}`, path.join(".")]));
        print(
          flags.json
            ? JSON.stringify(names)
            : Object.entries(names)
                .map(([name, key]) => `${name.padEnd(36)} ${key}`)
                .join("\n"),
        );
        return;
      }
      if (flags.schema) return print(JSON.stringify(configSchema(), null, 2));
      const config = await commandConfig(flags.config);
      print(flags.json ? JSON.stringify(config, null, 2) : stringify(config).trimEnd());
    });
}
