/**
 * Published sets of tasks with tools, named by a small file `….set.yaml`. Their tools are the packages' own code, which runs
 * in a service apart; so is what says whether a task is solved.
 *
 *     set: tau2
 *     domain: retail
 *     user_model: gpt-4.1   # speaks for the customers
 */
import { z } from "zod";
import { loadEach } from "../load-each.ts";
import { readRows } from "../readers/read-rows.ts";
import { readYaml } from "../readers/read-yaml.ts";
import { parseTask } from "../task-error.ts";
import type { TaskFormat } from "../task-format.ts";
import { installedSet } from "./installed-set.ts";
import { taskIdOf, toTask } from "./to-task.ts";

const SetFile = z.discriminatedUnion("set", [
  z.strictObject({
    set: z.literal("tau2"),
    domain: z.enum(["retail", "airline"]),
    user_model: z.string().min(1).max(200).nullable().default(null).describe("speaks for the customer; left out: the run's own"),
  }),
  z.strictObject({ set: z.literal("agentdojo"), domain: z.enum(["banking", "slack", "travel", "workspace"]) }),
]);

export const toolSets: TaskFormat = {
  name: "tool-set",
  title: "a published set of tasks with tools, named by a file ….set.yaml",

  async matches(path) {
    return path.endsWith(".set.yaml");
  },

  async load(path, options) {
    const { user_model, ...asked } = { user_model: null, ...parseTask(SetFile, await readYaml(path, { followsLinks: true }), path) };
    const { folder, rows } = await installedSet(asked, options);
    const found = (await readRows(rows, options)).map(({ value }) => ({ value, id: taskIdOf(asked, value) }));
    const wanted = found.filter(({ id }) => options.only?.has(id) ?? true);
    return loadEach(
      wanted,
      ({ id }) => `${path} ${id}`,
      async ({ value, id }) => toTask({ ...asked, folder, user_model }, value, `${path} ${id}`),
      options,
    );
  },
};
