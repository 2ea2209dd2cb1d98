/** Which tasks of a set, and in which order: the same on every machine and in whatever order they were loaded. */
import { z } from "zod";
import { AlidadeError } from "../errors.ts";
import { hashOf } from "../schema/ids.ts";
import type { Task } from "../schema/task.ts";
import { toMatch } from "../schema/to-match.ts";

/** A name, = and a value in which * stands for any characters. */
const LabelGlob = z.string().regex(/^[^=]+=/, "give a name, = and a value, such as repo=django/*");

const Shard = z.string().refine((text) => toShard(text) !== null, "give the part and the number of parts, as in 2/8");

export const TaskChoice = z.strictObject({
  task: z.string().min(1).optional().describe("those with this id; * stands for any characters"),
  labels: z.array(LabelGlob).optional().describe("those with all of these labels, each as `name=value`; * stands for any characters"),
  shuffle: z
    .string()
    .min(1)
    .optional()
    .describe("their order is mixed by this word: the same one gives the same order everywhere; default: as they were loaded"),
  shard: Shard.optional().describe("`i/n`: the i-th of n parts of what is left, after mixing; parts have no task in common"),
});
export type TaskChoice = z.infer<typeof TaskChoice>;

export function selectTasks<T>(all: readonly T[], taskOf: (one: T) => Task, { task, labels = [], shuffle, shard }: TaskChoice): T[] {
  const tests = [...(task === undefined ? [] : [byId(task)]), ...labels.map(byLabel)];
  const chosen = all.filter((one) => tests.every((test) => test(taskOf(one))));
  const ordered = shuffle === undefined ? chosen : shuffled(chosen, taskOf, shuffle);
  const part = shard === undefined ? null : toShard(shard);
  return part === null ? ordered : ordered.filter((_, at) => at % part.count === part.index - 1);
}

/** Those of a run. Throws `config_invalid` where none is left. */
export function chosenTasks(all: readonly Task[], choice: TaskChoice): Task[] {
  const chosen = selectTasks(all, (task) => task, choice);
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
