/** Flags by which an operator names files of plug-ins, and what they load. */
import { Option } from "commander";
import { AlidadeError } from "../../../base/errors.ts";
import { EngineAddress } from "../../../base/schema/container-engine.ts";
import type { Grader } from "../../../graders/index.ts";
import { graderRegistry, remoteTo } from "../../../graders/index.ts";
import { graderServers, NamedGraderServer } from "../../../graders/remote/index.ts";
import { backendNames } from "../../../sandboxes/index.ts";
import { taskFormatRegistry } from "../../../tasks/index.ts";
import { terminal } from "../terminal.ts";

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

/** As `grader_servers` of the run file. */
export function graderServerOption(): Option {
  const words =
    "origin of a server that tasks may be graded by, such as http://127.0.0.1:8100, or ORIGIN=VARIABLE with the variable that holds its key; several times for several";
  return new Option("--grader-server <origin>", words).argParser((word, list: NamedGraderServer[] = []) => [...list, toGraderServer(word)]);
}

function toGraderServer(word: string): NamedGraderServer {
  const [url = "", variable] = word.split("=", 2);
  const result = NamedGraderServer.safeParse(variable === undefined ? url : { url, api_key_env: variable });
  if (result.success) return result.data;
  const [issue] = result.error.issues.flatMap((one) => (one.code === "invalid_union" ? one.errors.flat() : [one]));
  throw new AlidadeError("config_invalid", `--grader-server is "${word}": ${issue?.message}`, { param: "grader_servers" });
}

type PlugInFiles = { graders: readonly string[]; task_formats: readonly string[]; grader_servers?: readonly NamedGraderServer[] };

/**
 * Those of the files, and the built-in ones; without servers no task is graded by one. Throws `plugin_invalid`, and
 * `config_invalid` for a server's key that is not there.
 */
export async function loadPlugIns({ graders, task_formats, grader_servers }: PlugInFiles) {
  const known = await graderRegistry.with(graders);
  const asking = grader_servers && remoteTo(graderServers(grader_servers, terminal().env));
  return {
    graders: known.map((one): Grader => (asking !== undefined && one.name === asking.name ? (asking as unknown as Grader) : one)),
    formats: await taskFormatRegistry.with(task_formats),
  };
}

function collect(file: string, files: string[] = []): string[] {
  return [...files, file];
}
