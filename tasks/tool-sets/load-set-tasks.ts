/** Loads the tasks that the own code of a published set lists. */
import type { Task } from "../../base/schema/task.ts";
import { loadEach } from "../load-each.ts";
import { readRows } from "../readers/read-rows.ts";
import type { LoadOptions } from "../task-format.ts";
import { installedSet, type ListOrder, type SetSource } from "./installed-set.ts";

/** `read` checks a row of the list and names its task; `toTask` gets the folder of the set and the place for errors. */
export type ListedTasks<Row> = {
  read(value: unknown): { row: Row; id: string };
  toTask(folder: string, row: Row, where: string): Task;
};

/** `path`: the set's file, which errors name. Throws `pack_failed`, and what `read` throws. */
export async function loadSetTasks<Row>(
  path: string,
  source: SetSource,
  order: ListOrder,
  { read, toTask }: ListedTasks<Row>,
  options: LoadOptions,
): Promise<Task[]> {
  const { folder, rows } = await installedSet(source, order, options);
  const found = (await readRows(rows, options)).map(({ value }) => read(value));
  const wanted = found.filter(({ id }) => options.only?.has(id) ?? true);
  const nameOf = ({ id }: { id: string }) => `${path} ${id}`;
  return loadEach(wanted, nameOf, async (one) => toTask(folder, one.row, nameOf(one)), options);
}
