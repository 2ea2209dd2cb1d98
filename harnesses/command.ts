/** One's own command line as a harness: nothing is installed, and every API shape's variables point at the proxy. */
import type { RequestClass } from "../schema/session-spec.ts";
import type { Harness, HarnessContext } from "./harness.ts";
import { checkedInstruction } from "./instruction.ts";
import { lastLine } from "./last-line.ts";
import { usualVariables } from "./usual-variables.ts";

export const placeholders = ["instruction", "base_url", "api_key", "model", "home", "workdir"] as const;
type Placeholder = (typeof placeholders)[number];

/**
 * A harness made of a command line, for run files. Both `argv` and the values of `env` may hold `{instruction}`,
 * `{base_url}` (without `/v1`), `{api_key}`, `{model}`, `{home}` and `{workdir}`; other braces stay as they are.
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
}): Harness {
  return {
    name: options.name ?? "command",
    title: "One's own command",
    dialects: options.dialects ?? null,
    packages: {},
    version: null,
    makes: options.makes ?? [],
    commands: [],

    launch(context) {
      const values = valuesOf(context);
      return {
        argv: options.argv.map((argument) => filled(argument, values)),
        env: {
          ...usualVariables(context.baseUrl, context.apiKey),
          HOME: context.home,
          ALIDADE_MODEL: context.model,
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

function valuesOf(context: HarnessContext): Record<Placeholder, string> {
  return {
    instruction: checkedInstruction(context.instruction),
    base_url: context.baseUrl,
    api_key: context.apiKey,
    model: context.model,
    home: context.home,
    workdir: context.workdir,
  };
}

const pattern = new RegExp(`\\{(${placeholders.join("|")})\\}`, "g");

/** In one pass: an instruction that itself holds `{model}` stays as it is. */
function filled(text: string, values: Record<Placeholder, string>): string {
  return text.replace(pattern, (_, name: Placeholder) => values[name]);
}
