/** Loads the tasks of a set whose tools are the package's own code. */
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import type { Task } from "../../base/schema/task.ts";
import { loadEach } from "../load-each.ts";
import { readRows } from "../readers/read-rows.ts";
import type { LoadOptions } from "../task-format.ts";
import { installedSet, type SetSource } from "./installed-set.ts";
import { taskIdOf, toTask } from "./to-task.ts";

export const ToolDomainFiles = [
  z.strictObject({
    set: z.literal("tau2"),
    domain: z.enum(["retail", "airline"]),
    user_model: z.string().min(1).max(200).nullable().default(null).describe("model that speaks for the customer; left out: the run's own"),
  }),
  z.strictObject({ set: z.literal("agentdojo"), domain: z.enum(["banking", "slack", "travel", "workspace"]) }),
] as const;
type ToolDomainFile = z.infer<(typeof ToolDomainFiles)[number]>;

const source: SetSource = { name: "tool-sets", files: join(dirname(fileURLToPath(import.meta.url)), "service"), image: null };

export async function loadToolDomain(path: string, file: ToolDomainFile, options: LoadOptions): Promise<Task[]> {
  const { user_model, ...asked } = { user_model: null, ...file };
  const { set, domain } = asked;
  const order = { title: `${set} ${domain}`, key: `${set}-${domain}`, args: [set, domain] };
  const { folder, rows } = await installedSet(source, order, options);
  const found = (await readRows(rows, options)).map(({ value }) => ({ value, id: taskIdOf(asked, value) }));
  const wanted = found.filter(({ id }) => options.only?.has(id) ?? true);
  return loadEach(
    wanted,
    ({ id }) => `${path} ${id}`,
    async ({ value, id }) => toTask({ ...asked, folder, user_model }, value, `${path} ${id}`),
    options,
  );
}
