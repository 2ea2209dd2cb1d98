/** Does a value of JSON nest at most `limit` levels? Walks with a list of its own, for the call stack is what a deep value would break. */
export function nestsWithin(value: unknown, limit: number): boolean {
  let level: unknown[] = [value];
  for (let depth = 0; level.length > 0; depth++) {
    const next: unknown[] = [];
    for (const item of level) {
      if (item === null || typeof item !== "object") continue;
      if (depth === limit) return false;
      for (const child of Array.isArray(item) ? item : Object.values(item))
        if (child !== null && typeof child === "object") next.push(child);
    }
    level = next;
  }
  return true;
}
