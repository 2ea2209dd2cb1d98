/** One's own command line as a harness: nothing is installed, and every API shape's variables point at the proxy. */
import { existsSync } from "node:fs";
import { isAbsolute, join, normalize } from "node:path";
import type { RequestClass } from "../base/schema/session-spec.ts";
import type { Harness, OwnFiles } from "./harness.ts";
import type { HarnessContext } from "./harness-context.ts";
import { checkedInstruction } from "./instruction.ts";
import { lastLine } from "./last-line.ts";
import { harnessFor } from "./registry.ts";
import { usualVariables } from "./usual-variables.ts";

export const placeholders = ["instruction", "base_url", "api_key", "model", "home", "workdir", "files"] as const;
type Placeholder = (typeof placeholders)[number];

/**
 * A harness made of a command line, for run files. Both `argv` and the values of `env` may hold `{instruction}`,
 * `{base_url}` (without `/v1`), `{api_key}`, `{model}`, `{home}`, `{workdir}` and `{files}` (where the files of its
 * pack lie); other braces stay as they are. An argument that names one of these files becomes its path there.
 *
 *     commandHarness({ argv: ["python3", "agent.py", "--model", "{model}", "{instruction}"] })
 */
export function commandHarness(options: {
  argv: readonly string[];
  env?: Readonly<Record<string, string>>;
  name?: string;
  makes?: readonly RequestClass[];
  /** null: all that there are. */
  dialects?: readonly string[] | null;
  own?: OwnFiles;
}): Harness {
  const { own } = options;
  const sight = harnessFor(options.argv)?.sight;
  return {
    ...(own && { own }),
    ...(sight !== undefined && { sight }),
    name: options.name ?? "command",
    title: "One's own command",
    dialects: options.dialects ?? null,
    packages: {},
    version: null,
    makes: options.makes ?? [],
    commands: [],
    tools: true,

    launch(context) {
      const values = valuesOf(context);
      return {
        argv: [
          ...(own ? [`${context.pack}/bin/command`] : []),
          ...options.argv.map((argument) =>
            own && isPacked(own, argument) ? `${values.files}/${normalize(argument)}` : filled(argument, values),
          ),
        ],
        env: {
          ...usualVariables(context.baseUrl, context.apiKey),
          HOME: context.home,
          ALIDADE_MODEL: context.model,
          ...Object.fromEntries((context.tools ?? []).map(({ name, url }) => [toolVariable(name), url])),
          ...Object.fromEntries(Object.entries(options.env ?? {}).map(([key, value]) => [key, filled(value, values)])),
        },
        files: {},
      };
    },

    configure: (context) => ({ env: { ...usualVariables(context.baseUrl, context.apiKey), ALIDADE_MODEL: context.model }, files: {} }),

    end({ exit_code, stderr }) {
      if (exit_code === 0) return { failed: false, message: null };
      return { failed: true, message: lastLine(stderr) };
    },
  };
}

/** `ALIDADE_MCP_SHOP_URL` */
function toolVariable(server: string): string {
  return `ALIDADE_MCP_${server.replaceAll("-", "_").toUpperCase()}_URL`;
}

function valuesOf(context: HarnessContext): Record<Placeholder, string> {
  return {
    instruction: checkedInstruction(context.instruction),
    base_url: context.baseUrl,
    api_key: context.apiKey,
    model: context.model,
    home: context.home,
    workdir: context.workdir,
    files: `${context.pack}/files`,
  };
}

/** Whether an argument is the path of a file that is packed. */
function isPacked({ folder, files }: OwnFiles, argument: string): boolean {
  const path = normalize(argument);
  const isBelow = files
    .map(normalize)
    .some((file) => file === "." || path === file || path.startsWith(file.endsWith("/") ? file : `${file}/`));
  return isBelow && !isAbsolute(argument) && !path.startsWith("..") && existsSync(join(folder, path));
}

const pattern = new RegExp(`\\{(${placeholders.join("|")})\\}`, "g");

/** In one pass: an instruction that itself holds `{model}` stays as it is. */
function filled(text: string, values: Record<Placeholder, string>): string {
  return text.replace(pattern, (_, name: Placeholder) => values[name]);
}
