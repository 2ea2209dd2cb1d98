/** Where a trainer reaches a run: `<run>/control.json` while it runs. */

import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { newKey } from "../../../base/schema/ids.ts";
import { privateFileMode } from "../../../proxy/store/index.ts";
import type { Config } from "../../config.ts";
import { terminal } from "../terminal.ts";

const nothing: AsyncDisposable = { [Symbol.asyncDispose]: async () => undefined };

/** `token`: null where the operator knows it. For this user alone. */
export async function tellControl(
  run: string,
  url: string | null,
  token: string | null,
  note: (text: string) => void,
): Promise<AsyncDisposable> {
  const file = join(run, "control.json");
  // A process that was killed leaves its own, with an address that is dead.
  await rm(file, { force: true });
  if (url === null) return nothing;
  await writeFile(file, `${JSON.stringify({ url, token })}\n`, { mode: privateFileMode });
  note(`control listener on ${url}; url and token are in ${file}`);
  return { [Symbol.asyncDispose]: () => rm(file, { force: true }) };
}

/** The operator's token, by the variable that the configuration names, or one that is made. `made`: that one, to be told to this user; null: the operator knows it. */
export function controlTokenOf({ control_token_env }: Config): { token: string; made: string | null } {
  const given = terminal().env[control_token_env];
  if (given) return { token: given, made: null };
  const made = newKey();
  return { token: made, made };
}
