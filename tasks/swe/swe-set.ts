/** A published set: by which columns its rows are known, and what they mean. */
import type { Task } from "../../base/schema/task.ts";
import type { Recipe } from "./recipes/recipe.ts";

export type Columns = Record<string, unknown>;

export type RowPlace = {
  /** File and row, for errors. */
  where: string;
  /** The file's folder: some sets keep scripts beside their rows. */
  folder: string;
};

export interface SweSet {
  readonly name: string;
  readonly title: string;
  /** A row that has all of them is one of this set's, unless a set before it in the list says the same. */
  readonly columns: readonly string[];
  /** Errors are `task_invalid` and name file, row, column and value. */
  toTask(row: Columns, place: RowPlace): Task | Promise<Task>;
  /** How the image of a row is made, by what the row says. Left out: the set's rows do not say it. Errors are those of `toTask`. */
  recipe?(row: Columns, where: string): Recipe;
}
