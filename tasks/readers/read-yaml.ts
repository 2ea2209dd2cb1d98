/** YAML that a stranger wrote, as a value. What takes the library minutes is refused before. */
import { type Document, isScalar, parseDocument, visit } from "yaml";
import { messageOf } from "../../base/errors.ts";
import { taskError } from "../task-error.ts";
import { readText } from "./read-text.ts";

/** The library takes ten seconds for the worst megabyte, on a slow machine. Public tasks have some kilobytes. */
const mostBytes = 1024 * 1024;
/** Each alias is looked for in the whole document; the library's own bound is on what they copy. */
const mostAliases = 100;

type YamlOptions = {
  followsLinks: boolean;
  /** `<<` puts the keys of another map in. */
  merge?: boolean;
};

/** Throws `task_invalid` naming the file. */
export async function readYaml(file: string, { followsLinks, merge = false }: YamlOptions): Promise<unknown> {
  const text = await readText(file, { mostBytes, followsLinks });
  try {
    // The library's own look for a key that stands there twice holds each key of a map against each other one.
    const document = parseDocument(text, { uniqueKeys: false, merge });
    const [error] = document.errors;
    const why = error?.message ?? whyNotRead(document, merge);
    if (why === null) return document.toJS({ maxAliasCount: mostAliases });
    throw new Error(why);
  } catch (error) {
    throw taskError(file, "the file", `is not YAML: ${inOurWords(messageOf(error))}`);
  }
}

function whyNotRead(document: Document, merge: boolean): string | null {
  let [aliases, twice] = [0, null as string | null];
  visit(document, {
    Alias() {
      aliases += 1;
    },
    Map(_, { items }) {
      const keys = items.flatMap(({ key }) => (isScalar(key) && !(merge && key.value === "<<") ? [key.value] : []));
      const seen = new Set<unknown>();
      for (const key of keys) if (seen.size === seen.add(key).size) twice ??= String(key);
    },
  });
  if (twice !== null) return `the key ${JSON.stringify(twice)} stands twice in one map`;
  return aliases > mostAliases ? `it holds ${aliases} aliases, and ${mostAliases} are read: write them out` : null;
}

function inOurWords(message: string): string {
  if (/^Maximum call stack/.test(message)) return "it nests too deeply: write it flatter";
  return /^Excessive alias count/.test(message) ? "its aliases copy too much: write them out" : message;
}
