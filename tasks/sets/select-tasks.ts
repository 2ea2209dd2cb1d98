/** Which tasks of a set, and in which order: the same on every machine and in whatever order they were loaded. */
import { z } from "zod";
import { AlidadeError } from "../../base/errors.ts";
import { toMatch } from "../../base/schema/complaints/to-match.ts";
import { hashOf } from "../../base/schema/ids.ts";
import type { Task } from "../../base/schema/task.ts";
import { type PassCounts, PassRange, takeByPassRate, toldChoice } from "./pass-rate.ts";

/** A name, = and a value in which * stands for any characters. */
const LabelGlob = z.string().regex(/^[^=]+=/, "give a name, = and a value, such as repo=django/*");

const Shard = z.string().refine((text) => toShard(text) !== null, "give the part and the number of parts, as in 2/8");

export const TaskChoice = z.strictObject({
  task: z.string().min(1).optional().describe("those with this id; * stands for any characters"),
  labels: z.array(LabelGlob).optional().describe("those with all of these labels, each as `name=value`; * stands for any characters"),
  pass_rate: PassRange.optional().describe(
    "`low..high`, such as 0.1..0.9: those whose measured pass rate in the runs of `of` lies in this range; both ends belong to it",
  ),
  of: z
    .array(z.string().min(1))
    .optional()
    .describe("folders of the earlier runs that `pass_rate` is of; of a run over a service also ids of its sets"),
  pass: z.number().optional().describe("a rollout of those runs passes with this reward or more; default: 1"),
  with_unmeasured: z
    .boolean()
    .optional()
    .describe("tasks without a measured reward in those runs are taken too; default: they are left out, for an unknown rate is not 0"),
  shuffle: z
    .string()
    .min(1)
    .optional()
    .describe("their order is mixed by this word: the same one gives the same order everywhere; default: as they were loaded"),
  shard: Shard.optional().describe("`i/n`: the i-th of n parts of what is left, after mixing; parts have no task in common"),
});
export type TaskChoice = z.infer<typeof TaskChoice>;

/** `counts`: what the runs of `of` measured. `note` is told what `pass_rate` came to. */
export type EarlierRuns = { counts: PassCounts; note: (text: string) => void };

/** Throws `config_invalid` for a pass rate without earlier runs. */
export function selectTasks<T>(all: readonly T[], taskOf: (one: T) => Task, choice: TaskChoice, earlier: EarlierRuns | null = null): T[] {
  const { task, labels = [], shuffle, shard } = choice;
  const tests = [...(task === undefined ? [] : [byId(task)]), ...labels.map(byLabel)];
  const named = all.filter((one) => tests.every((test) => test(taskOf(one))));
  const chosen = withinPassRate(named, (one) => taskOf(one).task_id, choice, earlier);
  const ordered = shuffle === undefined ? chosen : shuffled(chosen, taskOf, shuffle);
  const part = shard === undefined ? null : toShard(shard);
  return part === null ? ordered : ordered.filter((_, at) => at % part.count === part.index - 1);
}

function withinPassRate<T>(all: T[], idOf: (one: T) => string, choice: TaskChoice, earlier: EarlierRuns | null): T[] {
  const { pass_rate, with_unmeasured = false, of = [] } = choice;
  if (pass_rate === undefined) return all;
  if (earlier === null)
    throw new AlidadeError("config_invalid", `pass_rate is ${pass_rate}: say by \`of\` which earlier runs it is of`, { param: "of" });
  const found = takeByPassRate(all, idOf, { pass_rate, with_unmeasured }, earlier.counts);
  earlier.note(toldChoice(found, idOf, { pass_rate, with_unmeasured }, of));
  return found.taken;
}

/** Those of a run. Throws `config_invalid` where none is left. */
export function chosenTasks(all: readonly Task[], choice: TaskChoice, earlier: EarlierRuns | null = null): Task[] {
  const chosen = selectTasks(all, (task) => task, choice, earlier);
  if (chosen.length > 0 || all.length === 0) return chosen;
  throw new AlidadeError("config_invalid", `none of the ${all.length} tasks is chosen by ${JSON.stringify(choice)}: choose wider`, {
    param: "choose",
  });
}

function byId(glob: string): (task: Task) => boolean {
  const fits = toMatch(glob);
  return ({ task_id }) => fits(task_id);
}

function byLabel(text: string): (task: Task) => boolean {
  const at = text.indexOf("=");
  const [name, fits] = [text.slice(0, at), toMatch(text.slice(at + 1))];
  return ({ labels }) => Object.hasOwn(labels, name) && fits(labels[name] ?? "");
}

function shuffled<T>(all: T[], taskOf: (one: T) => Task, seed: string): T[] {
  const keyed = all.map((one) => ({ one, key: hashOf([seed, taskOf(one).task_id]) }));
  return keyed.sort((a, b) => (a.key < b.key ? -1 : 1)).map(({ one }) => one);
}

/** The `index`-th of `count` parts, from 1: parts differ by one task at most. */
function toShard(text: string): { index: number; count: number } | null {
  const [, index = "", count = ""] = /^(\d{1,6})\/(\d{1,6})$/.exec(text) ?? [];
  const shard = { index: Number(index), count: Number(count) };
  return index !== "" && shard.index >= 1 && shard.index <= shard.count ? shard : null;
}
