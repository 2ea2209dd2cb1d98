/** Flags of every verb that opens sessions or looks at servers: where they are, and what they are. */
import type { Command } from "commander";
import { engines } from "../../../engines/index.ts";

export type EngineFlags = { engine: string[]; kind?: string; apiKeyEnv?: string };

export function addEngineFlags(command: Command): Command {
  return command
    .option("-e, --engine <url>", "URL of the inference server, or `practice`; several times for several servers", collect, [])
    .option("-k, --kind <name>", `what server it is: ${engines.map(({ name }) => name).join(", ")}, or the file of a plug-in`)
    .option("--api-key-env <name>", "variable that holds the server's key");
}

/** As keys of the configuration. One URL is the engine, several are engines with numbers for names. */
export function enginesOf({ engine: urls, kind, apiKeyEnv: api_key_env }: EngineFlags): Record<string, unknown> {
  if (urls.length < 2) return { engine: { url: urls[0], kind, api_key_env } };
  return { engines: urls.map((url, index) => ({ name: `engine-${index + 1}`, url, kind, api_key_env })) };
}

function collect(url: string, urls: string[]): string[] {
  return [...urls, url];
}
