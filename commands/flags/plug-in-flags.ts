/** Flags by which an operator names files of plug-ins, and what they load. */
import { Option } from "commander";
import { graderRegistry } from "../../graders/index.ts";
import { backendNames } from "../../sandboxes/index.ts";
import { taskFormatRegistry } from "../../tasks/index.ts";

export const sandboxWords = `${backendNames.join(", ")}, or the file of a plug-in`;

export function graderOption(): Option {
  return new Option("--grader <file>", "file of a plug-in: a grader that tasks may name; several times for several").argParser(collect);
}

export function taskFormatOption(): Option {
  return new Option("--task-format <file>", "file of a plug-in: a form of tasks; several times for several").argParser(collect);
}

/** Those of the files, and the built-in ones. Throws `plugin_invalid`. */
export async function loadPlugIns({ graders, task_formats }: { graders: readonly string[]; task_formats: readonly string[] }) {
  return { graders: await graderRegistry.with(graders), formats: await taskFormatRegistry.with(task_formats) };
}

function collect(file: string, files: string[] = []): string[] {
  return [...files, file];
}
