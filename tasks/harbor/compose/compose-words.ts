/** Values of a compose file in the forms that compose allows for them. */
import { z } from "zod";

/** A line, split as a shell splits it but with nothing expanded, or its words. */
export const Argv = z.union([z.string().transform(splitWords), z.array(z.string())]);

const word = /"((?:[^"\\]|\\.)*)"|'([^']*)'|\\(.)|(\s+)|([^\s"'\\]+)/gs;

function splitWords(line: string): string[] {
  const words: string[] = [];
  let isOpen = false;
  for (const [, double, single, escaped, space, plain] of line.matchAll(word)) {
    if (space === undefined) {
      const part = double?.replace(/\\(["\\$`])/g, "$1") ?? single ?? escaped ?? plain ?? "";
      words.push(isOpen ? `${words.pop()}${part}` : part);
    }
    isOpen = space === undefined;
  }
  return words;
}

const Scalar = z.union([z.string(), z.number(), z.boolean(), z.null()]).transform((value) => (value === null ? "" : String(value)));

/** A map, or a list of `NAME=value`. A name without a value is the host's, which gives none. */
export const Pairs = z.union(
  [
    z.record(z.string(), Scalar),
    z
      .array(z.string().regex(/^[^=]+=/s))
      .transform((list) => Object.fromEntries(list.map((pair) => [pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1)]))),
  ],
  "a map of NAME: value, or a list of NAME=value: variables of the host are not given to services",
);

const units = new Map([
  ["h", 3600],
  ["m", 60],
  ["s", 1],
  ["ms", 0.001],
  ["us", 0.000001],
]);

/** `1m30s` in seconds. */
export const Duration = z
  .string()
  .regex(/^(?:\d+(?:\.\d+)?(?:h|ms|m|us|s))+$/, "a time such as 5s, 500ms or 1m30s")
  .transform((text) => {
    const parts = text.matchAll(/(\d+(?:\.\d+)?)(h|ms|m|us|s)/g);
    return Array.from(parts, ([, count, unit]) => Number(count) * (units.get(unit ?? "") ?? 0)).reduce((sum, one) => sum + one, 0);
  });

/** `512m`, `1gb`, or bytes, in MiB. */
export const Memory = z.union([z.int().positive().transform(String), z.string()]).transform((text, { addIssue }) => {
  const [, count, unit = ""] = /^(\d+(?:\.\d+)?)\s*([bkmg]?)b?$/i.exec(text.trim()) ?? [];
  if (count === undefined) addIssue({ code: "custom", message: "a size such as 512m or 1g" });
  const bytes = Number(count ?? 1) * 1024 ** ["", "k", "m", "g"].indexOf(unit.toLowerCase().replace("b", ""));
  return Math.max(1, Math.floor(bytes / 1024 ** 2));
});
