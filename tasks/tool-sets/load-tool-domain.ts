/** Loads the tasks of a set whose tools are the package's own code. */
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import type { Task } from "../../base/schema/task.ts";
import type { LoadOptions } from "../task-format.ts";
import type { SetSource } from "./installed-set.ts";
import { loadSetTasks } from "./load-set-tasks.ts";
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
  return loadSetTasks(
    path,
    source,
    order,
    {
      read: (row) => ({ row, id: taskIdOf(asked, row) }),
      toTask: (folder, row, where) => toTask({ ...asked, folder, user_model }, row, where),
    },
    options,
  );
}
