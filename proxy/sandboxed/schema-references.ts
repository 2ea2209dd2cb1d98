/**
 * Schemas that point outside of themselves. An engine makes grammars of the schemas of tools and answers, and what
 * resolves their references may fetch them: the engine has the network that a sandbox has not.
 */

import { AlidadeError } from "../../base/errors.ts";
import type { NeutralRequest } from "../../base/schema/message.ts";
import { grammarFields } from "../../engines/index.ts";

/** Throws `request_invalid` for the first reference of a request that is not to its own schema. `body_values` bounds the walk. */
export function assertReferencesInside({ tools, sampling }: Pick<NeutralRequest, "tools" | "sampling">): void {
  for (const { name, parameters } of tools) assertInside(parameters, `the tool "${name.slice(0, 200)}"`, "tools");
  for (const field of grammarFields) assertInside(sampling[field], field, field);
}

const referenceKeys = ["$ref", "$dynamicRef", "$recursiveRef"];
/** What stands below them are values, however much they look like a schema. */
const dataKeys: ReadonlySet<string> = new Set(["const", "default", "enum", "example", "examples"]);
/** Schemas by a name that is no keyword. */
const mapKeys: ReadonlySet<string> = new Set(["$defs", "definitions", "dependentSchemas", "patternProperties", "properties"]);

function assertInside(schema: unknown, what: string, param: string): void {
  const waiting = [schema];
  while (waiting.length > 0) {
    const next = waiting.pop();
    if (next === null || typeof next !== "object") continue;
    const outside = referenceKeys
      .map((key) => (next as Record<string, unknown>)[key])
      .find((to) => typeof to === "string" && !to.startsWith("#"));
    if (outside !== undefined)
      throw refused(
        `The schema of ${what} refers to "${String(outside).slice(0, 200)}", outside of itself: put what it refers to in its $defs, and begin the $ref with #.`,
        param,
      );
    for (const [key, value] of Object.entries(next))
      if (Array.isArray(next) || !dataKeys.has(key)) for (const inner of schemasOf(key, value)) waiting.push(inner);
  }
}

function schemasOf(key: string, value: unknown): unknown[] {
  return mapKeys.has(key) && value !== null && typeof value === "object" ? Object.values(value) : [value];
}

function refused(message: string, param: string): AlidadeError {
  return new AlidadeError("request_invalid", message, { param });
}
