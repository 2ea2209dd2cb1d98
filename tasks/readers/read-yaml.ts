/** YAML that a stranger wrote, as a value. What takes the library minutes is refused before. */
import { messageOf } from "../../base/errors.ts";
import { taskError } from "../task-error.ts";
import { readText } from "./read-text.ts";

/** The library takes ten seconds for the worst megabyte, on a slow machine. Public tasks have some kilobytes. */
const mostBytes = 1024 * 1024;

type YamlOptions = {
  followsLinks: boolean;
  /** `<<` puts the keys of another map in. */
  merge?: boolean;
};

/** Throws `task_invalid` naming the file. */
export async function readYaml(file: string, { followsLinks, merge = false }: YamlOptions): Promise<unknown> {
  const text = await readText(file, { mostBytes, followsLinks });
  const [{ parseDocument }, { mostAliases, yamlComplaint }] = await Promise.all([import("yaml"), import("./yaml-complaint.ts")]);
  try {
    // The library's own look for a key that stands there twice holds each key of a map against each other one.
    const document = parseDocument(text, { uniqueKeys: false, merge });
    const [error] = document.errors;
    const why = error?.message ?? yamlComplaint(document, merge);
    if (why === null) return document.toJS({ maxAliasCount: mostAliases });
    throw new Error(why);
  } catch (error) {
    throw taskError(file, "the file", `is not YAML: ${inOurWords(messageOf(error))}`);
  }
}

function inOurWords(message: string): string {
  if (/^Maximum call stack/.test(message)) return "it nests too deeply: write it flatter";
  return /^Excessive alias count/.test(message) ? "its aliases copy too much: write them out" : message;
}
