/** The task formats; a new one is a file here and a line below. */
import { registryOf } from "../base/host/plug-ins.ts";
import { harbor } from "./harbor.ts";
import { native } from "./native.ts";
import { questions } from "./questions/questions.ts";
import { sweRow } from "./swe/swe-row.ts";
import type { TaskFormat } from "./task-format.ts";
import { terminalBench } from "./terminal-bench.ts";
import { toolSets } from "./tool-sets/tool-sets.ts";

export const taskFormats = [native, harbor, terminalBench, questions, sweRow, toolSets] as const satisfies readonly TaskFormat[];

export const taskFormatRegistry = registryOf<TaskFormat>({
  noun: "task format",
  param: "task_formats",
  list: taskFormats,
  members: { name: "text", title: "text", matches: "function", load: "function" },
});
