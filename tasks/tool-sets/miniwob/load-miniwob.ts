/**
 * Loads MiniWoB++: each page of the package with a seed is a task, on a screen.
 *
 *     set: miniwob
 *     pages: [click-test, enter-text]   # left out: all
 *     seeds: 5                          # 0 to 4
 */
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { hashOf } from "../../../base/schema/ids.ts";
import type { Task } from "../../../base/schema/task.ts";
import { parseTask } from "../../task-error.ts";
import type { LoadOptions } from "../../task-format.ts";
import type { SetSource } from "../installed-set.ts";
import { loadSetTasks } from "../load-set-tasks.ts";
import { MiniwobRow, miniwobId, toMiniwobTask } from "./to-miniwob-task.ts";

/**
 * These pages move by the clock, show the date, or use chance that no seed controls. So two rollouts would see two pages. `hover-shape`
 * has no end, and `button-delay` rewards the time it took.
 */
const leftOut = [
  "button-delay",
  "chase-circle",
  "click-pie",
  "drag-items",
  "drag-items-grid",
  "drag-sort-numbers",
  "form-sequence",
  "hover-shape",
  "moving-items",
  "stock-market",
  "terminal",
  "use-slider",
  "use-slider-2",
];

const PageName = z
  .string()
  .regex(/^[a-z\d-]{1,60}$/, "the name of a page, such as click-test")
  .refine((name) => !leftOut.includes(name), { error: "is not the same task each time, or has no end: leave it out" });

export const MiniwobFile = z.strictObject({
  set: z.literal("miniwob"),
  pages: z.array(PageName).min(1).max(200).optional().describe("left out: all pages that the seed determines"),
  seeds: z.number().int().min(1).max(1_000).default(1).describe("number of seeds, from 0 on: each page is a task for each"),
});
type MiniwobFile = z.infer<typeof MiniwobFile>;

/** Lists the pages in the same browser that shows them in tasks. */
const source: SetSource = {
  name: "miniwob",
  files: join(dirname(fileURLToPath(import.meta.url)), "service"),
  image: "alidade/desktop",
};

export async function loadMiniwob(path: string, { pages, seeds }: MiniwobFile, options: LoadOptions): Promise<Task[]> {
  const args = [String(seeds), ...(pages ?? ["--without", ...leftOut])];
  return loadSetTasks(
    path,
    source,
    { title: "miniwob", key: hashOf(args).slice(0, 16), args },
    {
      read: (value) => {
        const row = parseTask(MiniwobRow, value, path);
        return { row, id: miniwobId(row) };
      },
      toTask: toMiniwobTask,
    },
    options,
  );
}
