/** Turns Polar's steps that prepare a sandbox (`prepare`, `eval_prepare`) into lines of a shell. */
import { z } from "zod";
import { quoted } from "../../tasks/swe/index.ts";
import { none } from "./asks-nothing.ts";

export const EnvironmentVariables = z.record(z.string().regex(/^[A-Za-z_]\w*$/, "the name of a variable"), z.string()).default({});

const noUpload =
  "no file of this machine is read for a request: send the content in a command, as in {type: exec, command: \"base64 -d > TARGET <<'END'\\n…\\nEND\"}, or put the file into the image";

export const Prepare = z.strictObject({
  type: z.literal("exec", noUpload),
  command: z.string().min(1),
  cwd: z.string().nullish(),
  env: EnvironmentVariables.nullish(),
  max_attempts: z.number().int().min(1).max(10).default(1),
  retry_backoff_seconds: z.number().min(0).max(60).default(0),
  source: none(noUpload),
  target: none(noUpload),
});
export type Prepare = z.infer<typeof Prepare>;

/** Each step begins where the shell was, with variables of its own. The first one that fails ends the shell. */
export function prepareLines(steps: readonly Prepare[]): string {
  return ["set -e", ...steps.map(lineOf)].join("\n");
}

/** The wait between two tries doubles, as in Polar. */
function lineOf({ command, cwd, env, max_attempts: most, retry_backoff_seconds: wait }: Prepare): string {
  const variables = Object.entries(env ?? {}).map(([name, value]) => `export ${name}=${quoted(value)}`);
  const step = ["(", ...(cwd == null ? [] : [`cd ${quoted(cwd)}`]), ...variables, command, ")"].join("\n");
  if (most === 1) return step;
  // A condition would switch `set -e` off inside the step, so it is a shell of its own.
  const tries = Array.from({ length: most }, (_, at) => `bash -ec ${quoted(step)}${at < most - 1 ? ` || { sleep ${wait * 2 ** at}` : ""}`);
  return `${tries.join("\n")}${"\n}".repeat(most - 1)}`;
}
