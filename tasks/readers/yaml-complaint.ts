/** What a YAML document of a stranger may not hold. */
import { type Document, isScalar, visit } from "yaml";

/** Each alias is looked for in the whole document; the library's own bound is on what they copy. */
export const mostAliases = 100;

/** null: it may be read. */
export function yamlComplaint(document: Document, merge: boolean): string | null {
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
