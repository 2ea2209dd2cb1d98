/** Values of `env` that Harbor takes from the host: `${VAR}`, `${VAR:-default}`. */
import { taskError } from "../task-error.ts";

const template = /^\$\{([^}:]+)(?::-(.*))?\}$/s;

/**
 * `host`: the variables that the operator gives to tasks. A task file is untrusted, so it reads no others: without a default
 * such a value is an error that names it.
 */
export function expandEnv(
  env: Record<string, string>,
  host: Readonly<Record<string, string>>,
  file: string,
  field: string,
): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).map(([name, value]) => {
      const [, variable, otherwise] = template.exec(value) ?? [];
      if (variable === undefined) return [name, value];
      const given = Object.hasOwn(host, variable) ? host[variable] : otherwise;
      if (given !== undefined) return [name, given];
      throw taskError(
        file,
        `${field}.${name}`,
        `is ${value}, and ${variable} is not given to tasks: set it and pass --task-env ${variable}, or write \${${variable}:-default}`,
      );
    }),
  );
}
