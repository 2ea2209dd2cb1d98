/** A published set: its columns, and how a row becomes a task. */
import type { Task } from "../../base/schema/task.ts";
import type { Recipe } from "./recipes/recipe.ts";

export type Columns = Record<string, unknown>;

export type RowPlace = {
  /** File and row, for errors. */
  where: string;
  /** The file's folder, because some sets keep scripts beside their rows. */
  folder: string;
};

export interface SweSet {
  readonly name: string;
  readonly title: string;
  /** A row with all of these belongs to this set, unless an earlier set in the list takes it. */
  readonly columns: readonly string[];
  /** Throws `task_invalid` with file, row, column and value. */
  toTask(row: Columns, place: RowPlace): Task | Promise<Task>;
  /** Returns how the row's image is made. Absent: the set's rows do not say it. Throws as `toTask` does. */
  recipe?(row: Columns, where: string): Recipe;
}
