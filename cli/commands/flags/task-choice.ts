/** Flags of every verb that takes some tasks of a set, and their order. */
import type { Command } from "commander";
import type { z } from "zod";
import { AlidadeError } from "../../../base/errors.ts";
import { TaskChoice } from "../../../tasks/sets/index.ts";
import { toNumber } from "../command-line.ts";

export type TaskChoiceFlags = {
  task?: string;
  label?: string[];
  passRate?: string;
  of?: string[];
  pass?: number;
  withUnmeasured?: boolean;
  shuffle?: string;
  shard?: string;
};

export function addTaskChoice(command: Command): Command {
  return command
    .option("--task <glob>", "those with this id; * stands for any characters")
    .option("--label <name=glob>", "those with this label; several times for several", collect)
    .option("--pass-rate <low..high>", "those whose measured pass rate in the runs of --of lies in this range, such as 0.1..0.9")
    .option(
      "--of <run>",
      "with --pass-rate: folder of an earlier run, or with --service the id of a set; several times for several",
      collect,
    )
    .option("--pass <reward>", "with --pass-rate: a rollout passes with this reward or more (default: 1)", toNumber)
    .option("--with-unmeasured", "with --pass-rate: also those without a measured reward there (default: they are left out)")
    .option("--shuffle <seed>", "mix their order by this word: the same one gives the same order everywhere")
    .option("--shard <i/n>", "the i-th of n parts of what is left, after mixing");
}

/** Throws `config_invalid` naming the flag. Flags that are not given are left out. */
export function taskChoiceOf({ task, label, passRate, of, pass, withUnmeasured, shuffle, shard }: TaskChoiceFlags): TaskChoice {
  const fields = { task, labels: label, pass_rate: passRate, of, pass, with_unmeasured: withUnmeasured, shuffle, shard };
  const given = Object.entries(fields).filter(([, value]) => value !== undefined);
  const result = TaskChoice.safeParse(Object.fromEntries(given));
  if (result.success) return result.data;
  const issue = result.error.issues[0] as z.core.$ZodIssue;
  const flag = issue.path[0] === "labels" ? "label" : String(issue.path[0]).replaceAll("_", "-");
  const value = issue.path.reduce<unknown>((found, key) => (found as Record<PropertyKey, unknown>)[key], Object.fromEntries(given));
  throw new AlidadeError("config_invalid", `--${flag} is ${JSON.stringify(value)}: ${issue.message}`, { param: flag });
}

function collect(text: string, all: string[] = []): string[] {
  return [...all, text];
}
