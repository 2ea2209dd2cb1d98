/** What an operator lets tasks have beyond their own files: variables of this host, and the public network. */
import { Option } from "commander";
import type { LoadOptions } from "../../tasks/task-format.ts";
import { terminal } from "../terminal.ts";

export function taskEnvOption(): Option {
  return new Option("--task-env <name>", "variable of this host that tasks may read; several times for several").argParser(
    (name: string, names: string[] = []) => [...names, name],
  );
}

/** A variable that is not set stays unknown to tasks. */
export function grantsOf(config: {
  task_env: readonly string[];
  allow_public_network?: boolean;
}): Pick<LoadOptions, "env" | "allowPublic"> {
  const { env } = terminal();
  const given = config.task_env.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]] as const]));
  return { env: Object.fromEntries(given), allowPublic: config.allow_public_network === true };
}
