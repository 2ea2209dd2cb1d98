/**
 * Stores each value that many rows of an index share only once: labels, policies, counts by reason that are mostly empty. So a
 * reader also holds it once, and need not search for equal values.
 */
/** Fields of a row, at any depth, whose values are shared. Each holds an object, a list or null. */
const sharedFields: ReadonlySet<string> = new Set([
  ...["policies", "labels", "agents", "excluded", "matches", "causes", "phases", "verdict"],
  ...["by_class", "uncounted", "prompts", "outcomes", "omitted", "continuity", "routing", "support", "teacher", "damaged", "tolerant"],
]);

/** Numbers values by their content. */
export class SharedValues {
  readonly #numbers = new Map<string, number>();
  #new: unknown[] = [];

  numberOf(value: unknown): number {
    const text = JSON.stringify(value);
    const known = this.#numbers.get(text);
    if (known !== undefined) return known;
    const number = this.#numbers.size;
    this.#numbers.set(text, number);
    this.#new.push(value);
    return number;
  }

  /** Returns the values that were numbered since the last call, in order. */
  takeNew(): unknown[] {
    const taken = this.#new;
    this.#new = [];
    return taken;
  }
}

/** Copies the row, with numbers instead of shared values. */
export function namedValues(row: object, shared: SharedValues): object {
  return Object.fromEntries(
    Object.entries(row).map(([name, value]: [string, unknown]) => {
      if (sharedFields.has(name)) return [name, shared.numberOf(value)];
      return [name, isPart(value) ? namedValues(value, shared) : value];
    }),
  );
}

/** Replaces the numbers by their values, in the row itself. */
export function putBack<Row extends object>(row: Row, shared: readonly unknown[]): Row {
  for (const name in row) {
    const value: unknown = row[name];
    if (sharedFields.has(name)) Reflect.set(row, name, shared[Number(value)]);
    else if (isPart(value)) putBack(value, shared);
  }
  return row;
}

function isPart(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
