/** Errors in task files: they name the file and the field, and say what was found there. */
import type { z } from "zod";
import { AlidadeError } from "../errors.ts";

export function taskError(file: string, field: string, message: string): AlidadeError {
  return new AlidadeError("task_invalid", `${file}: ${field}: ${message}`, { param: field });
}

/** The value in its shape, or `task_invalid` with every field that is wrong. */
export function parseTask<T>(schema: z.ZodType<T>, value: unknown, file: string): T {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  throw issuesError(result.error.issues, file);
}

/** The fields that a schema complains of, below `within`; null where it complains of none. */
export function issuesError(found: readonly z.core.$ZodIssue[], file: string, within?: string): AlidadeError | null {
  const below = within === undefined ? [] : [within];
  const issues = found.map((issue) => ({ field: fieldOf({ ...issue, path: [...below, ...issue.path] }), message: issue.message }));
  const text = issues.map(({ field, message }) => `${field}: ${message}`).join("; ");
  return issues.length === 0 ? null : new AlidadeError("task_invalid", `${file}: ${text}`, { param: issues[0]?.field ?? null });
}

function fieldOf(issue: z.core.$ZodIssue): string {
  const path = issue.path.map(String);
  // An unknown key is reported on its parent; its own name is what a person looks for.
  if (issue.code === "unrecognized_keys") path.push(issue.keys.join(", "));
  return path.join(".") || "the whole file";
}
