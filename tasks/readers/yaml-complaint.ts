/** Says why a YAML document from a stranger is refused. */
import { type Document, isScalar, visit } from "yaml";

/** The library searches the whole document for each alias. Its own bound limits only what aliases copy. */
export const mostAliases = 100;

/** Returns null if the document may be read. */
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
