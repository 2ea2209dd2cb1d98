/** Flags by which an operator names files of plug-ins, and what they load. */
import { Option } from "commander";
import { AlidadeError } from "../../errors.ts";
import { graderRegistry } from "../../graders/index.ts";
import { EngineAddress } from "../../sandboxes/engines/engine-connection.ts";
import { backendNames } from "../../sandboxes/index.ts";
import { taskFormatRegistry } from "../../tasks/index.ts";

export const sandboxWords = `${backendNames.join(", ")}, or the file of a plug-in`;

export function graderOption(): Option {
  return new Option("--grader <file>", "file of a plug-in: a grader that tasks may name; several times for several").argParser(collect);
}

export function taskFormatOption(): Option {
  return new Option("--task-format <file>", "file of a plug-in: a form of tasks; several times for several").argParser(collect);
}

/** As `docker_engines` of the run file, where an engine may have certificates of its own too. */
export function dockerEngineOption(): Option {
  const words = "address of a Docker engine for sandboxes, as DOCKER_HOST has it; several times for several";
  return new Option("--docker-engine <address>", words).argParser((host, list: EngineAddress[] = []) => [...list, toEngineAddress(host)]);
}

function toEngineAddress(host: string): EngineAddress {
  const result = EngineAddress.safeParse(host);
  if (result.success) return result.data;
  throw new AlidadeError("config_invalid", `--docker-engine is "${host}": ${result.error.issues[0]?.message}`, { param: "docker_engines" });
}

/** Those of the files, and the built-in ones. Throws `plugin_invalid`. */
export async function loadPlugIns({ graders, task_formats }: { graders: readonly string[]; task_formats: readonly string[] }) {
  return { graders: await graderRegistry.with(graders), formats: await taskFormatRegistry.with(task_formats) };
}

function collect(file: string, files: string[] = []): string[] {
  return [...files, file];
}
