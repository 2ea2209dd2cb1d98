/** Variables in the values of a compose file: `$$`, `$VAR`, `${VAR}`, `${VAR:-default}`, `${VAR-default}`. */
import { taskError } from "../../task-error.ts";

const variable = /\$(?:(\$)|([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(?::?-([^}$]*))?\}|\{([^}]*)\}?)/g;

/** What Harbor sets for every compose file. */
const ofHarbor = new Map([
  ["CONTEXT_DIR", "."],
  ["COMPOSE_PROJECT_NAME", "alidade"],
]);

/** `host`: the variables that the operator gives to tasks. Throws `task_invalid` for any other one without a default. */
export function interpolate<T>(value: T, host: Readonly<Record<string, string>>, file: string, field: string): T;
export function interpolate(value: unknown, host: Readonly<Record<string, string>>, file: string, field: string): unknown {
  if (typeof value === "string") return withValues(value, host, file, field);
  if (Array.isArray(value)) return value.map((one, index) => interpolate(one, host, file, `${field}.${index}`));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, interpolate(one, host, file, `${field}.${key}`)]));
}

function withValues(text: string, host: Readonly<Record<string, string>>, file: string, field: string): string {
  return text.replace(variable, (whole, dollar?: string, plain?: string, braced?: string, otherwise?: string, unread?: string) => {
    if (dollar !== undefined) return "$";
    if (unread !== undefined)
      throw taskError(file, field, `holds ${whole}: $NAME, \${NAME} and \${NAME:-default} are read, and a dollar sign is written $$`);
    const name = plain ?? braced ?? "";
    const value = Object.hasOwn(host, name) ? host[name] : (ofHarbor.get(name) ?? otherwise);
    if (value !== undefined) return value;
    throw taskError(
      file,
      field,
      `holds ${whole}, and ${name} is not given to tasks: set it and pass --task-env ${name}, or write \${${name}:-default}`,
    );
  });
}
