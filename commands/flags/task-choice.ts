/** Flags of every verb that takes some tasks of a set, and their order. */
import type { Command } from "commander";
import type { z } from "zod";
import { AlidadeError } from "../../errors.ts";
import { TaskChoice } from "../../tasks/select-tasks.ts";

export type TaskChoiceFlags = { task?: string; label?: string[]; shuffle?: string; shard?: string };

export function addTaskChoice(command: Command): Command {
  return command
    .option("--task <glob>", "those with this id; * stands for any characters")
    .option("--label <name=glob>", "those with this label; several times for several", (text, all: string[] = []) => [...all, text])
    .option("--shuffle <seed>", "mix their order by this word: the same one gives the same order everywhere")
    .option("--shard <i/n>", "the i-th of n parts of what is left, after mixing");
}

/** Throws `config_invalid` naming the flag. Flags that are not given are left out. */
export function taskChoiceOf({ task, label, shuffle, shard }: TaskChoiceFlags): TaskChoice {
  const given = Object.entries({ task, labels: label, shuffle, shard }).filter(([, value]) => value !== undefined);
  const result = TaskChoice.safeParse(Object.fromEntries(given));
  if (result.success) return result.data;
  const issue = result.error.issues[0] as z.core.$ZodIssue;
  const flag = issue.path[0] === "labels" ? "label" : String(issue.path[0]);
  const value = issue.path.reduce<unknown>((found, key) => (found as Record<PropertyKey, unknown>)[key], Object.fromEntries(given));
  throw new AlidadeError("config_invalid", `--${flag} is ${JSON.stringify(value)}: ${issue.message}`, { param: flag });
}
