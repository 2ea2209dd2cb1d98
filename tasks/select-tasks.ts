/** Which tasks of a set, and in which order: the same on every machine and in whatever order they were loaded. */
import { AlidadeError } from "../errors.ts";
import { hashOf } from "../schema/ids.ts";
import type { Task } from "../schema/task.ts";

export type TaskChoice = {
  /** All of these must hold. */
  tests?: readonly ((task: Task) => boolean)[];
  /** Mixes the order by this word and the tasks' ids. Absent: as they were loaded. */
  shuffle?: string;
  shard?: Shard;
};

/** The `index`-th of `count` parts, from 1: parts differ by one task at most, and have none in common. */
export type Shard = { index: number; count: number };

export function selectTasks<T>(all: readonly T[], taskOf: (one: T) => Task, { tests = [], shuffle, shard }: TaskChoice): T[] {
  const chosen = all.filter((one) => tests.every((test) => test(taskOf(one))));
  const ordered = shuffle === undefined ? chosen : shuffled(chosen, taskOf, shuffle);
  return shard === undefined ? ordered : ordered.filter((_, at) => at % shard.count === shard.index - 1);
}

function shuffled<T>(all: T[], taskOf: (one: T) => Task, seed: string): T[] {
  const keyed = all.map((one) => ({ one, key: hashOf([seed, taskOf(one).task_id]) }));
  return keyed.sort((a, b) => (a.key < b.key ? -1 : 1)).map(({ one }) => one);
}

/** `2/8`. Throws `config_invalid`. */
export function parseShard(text: string): Shard {
  const [, index = "", count = ""] = /^(\d{1,6})\/(\d{1,6})$/.exec(text) ?? [];
  const shard = { index: Number(index), count: Number(count) };
  if (index !== "" && shard.index >= 1 && shard.index <= shard.count) return shard;
  throw new AlidadeError("config_invalid", `--shard is ${JSON.stringify(text)}: give the part and the number of parts, as in 2/8`, {
    param: "shard",
  });
}
