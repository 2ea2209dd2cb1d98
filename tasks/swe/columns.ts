/** Columns that the sets share. Rows are untrusted. Their schemas are loose, because the sets have more columns than we read. */
import { z } from "zod";
import { hashOf } from "../../base/schema/ids.ts";
import { readJson } from "../../base/schema/read-json.ts";

/** Accepts lists and objects also as JSON text, as many published files have them. `what`: the word for errors. */
export function fromJsonText<T extends z.ZodType>(schema: T, what: "list" | "object") {
  return z.preprocess((value, context) => {
    if (typeof value !== "string") return value;
    try {
      return readJson(value);
    } catch {
      context.addIssue({ code: "custom", message: `is the text ${JSON.stringify(value.slice(0, 80))}, and no JSON ${what}` });
      return z.NEVER;
    }
  }, schema);
}

export const Names = fromJsonText(z.array(z.string().min(1)), "list");
export const RequiredNames = Names.pipe(z.array(z.string()).min(1, "names no test: a task without one cannot be failed"));

/** A column that must not be empty. */
export const Text = z.string().refine((text) => text.trim() !== "", "is empty: the set's rows have a text there");

/** A word that goes into shell commands and names. So it has no quote and no space, and is no option. */
export const Commit = z.string().regex(/^[0-9a-f]{7,64}$/, "is no commit: 7 to 64 hexadecimal digits are wanted");
export const Repository = z.string().regex(/^(?!\.{1,2}\/)[\w.-]+\/(?!\.{1,2}$)[\w.-]+$/, "is no repository: owner/name is wanted");

/** The columns of all sets like SWE-bench. */
export const Common = {
  instance_id: Text,
  repo: Repository,
  base_commit: Commit,
  problem_statement: Text,
  patch: Text,
  test_patch: Text,
  FAIL_TO_PASS: RequiredNames,
  PASS_TO_PASS: Names,
};

const longestId = 100;

/** Makes a task's id of an instance's name. A name that is too long for a file is cut off and gets a hash. */
export function taskIdOf(instance: string): string {
  const name = instance.replace(/[^A-Za-z0-9._-]/g, "-").replace(/^[^A-Za-z0-9]+/, "");
  if (name === instance && name.length <= longestId) return name;
  return `${name.slice(0, longestId - 17) || "task"}-${hashOf(instance).slice(0, 16)}`;
}
