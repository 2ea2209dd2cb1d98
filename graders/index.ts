/** The graders; a new one is a file here, a line below and its spec in schema/task.ts. */
import type { GraderSpec } from "../schema/task.ts";
import type { Grader } from "./grader.ts";
import { script } from "./script.ts";
import { tests } from "./tests.ts";

export const graders = [tests, script] as const;

/** The grader of a spec. A spec is only ever given to the grader of its own kind. */
export function graderOf(spec: GraderSpec): Grader {
  return graders.find((grader) => grader.kind === spec.kind) as unknown as Grader;
}
