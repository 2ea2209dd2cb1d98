/** Errors in task files: they name the file and the field, and say what was found there. */
import type { z } from "zod";
import { AlidadeError } from "../base/errors.ts";
import { type Complaint, complaintAbout } from "../base/schema/complaints/complaint.ts";
import { whyNoTree } from "./why-no-tree.ts";

export function taskError(file: string, field: string, message: string): AlidadeError {
  return new AlidadeError("task_invalid", `${file}: ${field}: ${message}`, { param: field });
}

/** The value in its shape, or `task_invalid` with every field that is wrong. A value that is no tree is refused before. */
export function parseTask<T>(schema: z.ZodType<T>, value: unknown, file: string): T {
  const why = whyNoTree(value);
  if (why !== null) throw taskError(file, "the whole file", why);
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  throw issuesError(result.error.issues, value, file);
}

/** The fields of `value` that a schema complains of, below `within`; null where it complains of none. */
export function issuesError(found: readonly z.core.$ZodIssue[], value: unknown, file: string, within?: string): AlidadeError | null {
  const below = within === undefined ? [] : [within];
  const issues = found.map((issue) => {
    const complaint = complaintAbout(issue, value);
    return { field: [...below, ...complaint.path].join(".") || "the whole file", message: wordsOf(complaint) };
  });
  const text = issues.map(({ field, message }) => `${field}: ${message}`).join("; ");
  return issues.length === 0 ? null : new AlidadeError("task_invalid", `${file}: ${text}`, { param: issues[0]?.field ?? null });
}

/** Such a message goes on from the field, and says itself what stands there. */
const predicate = /^(?:is|are|has|names|prints|says) /;

function wordsOf({ given, message, unknownKey, isWritten }: Complaint): string {
  if (unknownKey !== null) return "is no field here";
  if (isWritten && predicate.test(message)) return message;
  return given === "not given" ? `is missing: ${message}` : `is ${given}: ${message}`;
}
