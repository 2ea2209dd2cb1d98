/** What a task's words may be at most: none that people write comes near. */
const deepest = 64;
const mostNested = 1_000_000;

/**
 * Why a value that a parser made is nothing to work on, to stand behind its name; null: it is a tree of a size to work on. An
 * alias of YAML may hold itself, and deep or huge values break what walks them.
 */
export function whyNoTree(value: unknown): string | null {
  let met = 0;
  const look = (item: unknown, above: readonly object[]): string | null => {
    if (item === null || typeof item !== "object") return null;
    if (above.includes(item)) return "holds a list or map that holds itself: write it out, without the alias";
    if (above.length === deepest) return `nests deeper than ${deepest} levels: write it flatter`;
    met += 1;
    if (met > mostNested) return `holds more than ${mostNested} lists and maps, aliases written out: shorten it`;
    const within = [...above, item];
    for (const child of Array.isArray(item) ? item : Object.values(item)) {
      const why = look(child, within);
      if (why !== null) return why;
    }
    return null;
  };
  return look(value, []);
}
