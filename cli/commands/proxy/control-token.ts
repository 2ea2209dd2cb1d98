/** The token of a control listener: the operator's, by the variable that the configuration names, or one that is made. */

import { newKey } from "../../../base/schema/ids.ts";
import type { Config } from "../../config.ts";
import { terminal } from "../terminal.ts";

/** `made`: the same where it is not the operator's, to be told to this user; else null. */
export function controlTokenOf({ control_token_env }: Config): { token: string; made: string | null } {
  const given = terminal().env[control_token_env];
  if (given) return { token: given, made: null };
  const made = newKey();
  return { token: made, made };
}
