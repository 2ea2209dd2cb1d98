/** Flags of every verb that opens sessions: one for each option of a session that is one value. */
import type { Command } from "commander";
import { SessionOptions } from "../../../base/schema/session-spec.ts";
import { Config } from "../../config.ts";
import { flagKey, flagOf } from "./schema-flags.ts";

/** By the name that commander makes of the flag. */
export type SessionFlags = Record<string, unknown>;

/** `fixed`: options that this verb decides itself. `defaults`: where it takes another one than the configuration. */
export function addSessionFlags(
  command: Command,
  { fixed = [], defaults = {} }: { fixed?: readonly string[]; defaults?: Partial<SessionOptions> } = {},
): Command {
  for (const key of Object.keys(SessionOptions.shape) as (keyof SessionOptions)[]) {
    const flag = fixed.includes(key) ? null : flagOf(key, Config.shape[key], defaults[key]);
    if (flag !== null) command.addOption(flag);
  }
  return command;
}

/** As keys of the configuration; undefined where a flag was not given. */
export function sessionOptionsGiven(flags: SessionFlags): Record<string, unknown> {
  return Object.fromEntries(Object.keys(SessionOptions.shape).map((key) => [key, flags[flagKey(key)]]));
}
