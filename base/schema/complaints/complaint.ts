/** What a schema refuses, in the words of a sentence: the field, its value, and what is wrong with it. */
import type { z } from "zod";

export type Complaint = {
  path: string[];
  /** Shown as JSON, or `not given`. */
  given: string;
  message: string;
  unknownKey: string | null;
  /** The schema's author wrote the message, and it may name the value already. */
  isWritten: boolean;
};

/** The first complaint about a value; its path is the key that is no key, where that is it. */
export function complaintOf({ issues }: z.ZodError, value: unknown): Complaint {
  return complaintAbout(issues[0], value);
}

export function complaintAbout(outer: z.core.$ZodIssue | undefined, value: unknown): Complaint {
  const issue = outer && innermost(outer);
  const unknownKey = issue?.code === "unrecognized_keys" ? (issue.keys[0] ?? null) : null;
  const path = [...(issue?.path ?? []).map(String), ...(unknownKey === null ? [] : [unknownKey])];
  const given = path.reduce<unknown>(
    (at, key) => (at !== null && typeof at === "object" ? (at as Record<string, unknown>)[key] : undefined),
    value,
  );
  const message = plain(issue?.message ?? "invalid");
  return { path, given: shown(given), message, unknownKey, isWritten: message === issue?.message && unknownKey === null };
}

/** For a value with several allowed forms: the complaint of the form that matched furthest. */
function innermost(issue: z.core.$ZodIssue): z.core.$ZodIssue {
  if (issue.code !== "invalid_union") return issue;
  const [best] = issue.errors
    .flat()
    .map(innermost)
    .toSorted((a, b) => depthOf(b) - depthOf(a));
  return best ? { ...best, path: [...issue.path, ...best.path] } : issue;
}

/** An unknown key is one level below the object that it is reported on. */
function depthOf(issue: z.core.$ZodIssue): number {
  return 2 * issue.path.length + (issue.code === "unrecognized_keys" ? 3 : 0);
}

/** The value stands beside it, so what kind it is goes without saying. */
function plain(message: string): string {
  return message
    .replace(/^(?:Invalid (?:input|option)|Too (?:small|big)): (?=expected)|^Invalid string: /, "")
    .replace(/, received \w+$/, "");
}

function shown(value: unknown): string {
  return typeof value === "number" ? String(value) : (JSON.stringify(value) ?? "not given").slice(0, 200);
}
