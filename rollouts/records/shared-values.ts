/**
 * Values of an index's rows that many rows have: labels, policies, counts by reason that are mostly empty. The file has each
 * of them once, so a reader holds it once, without looking for equal ones.
 */
/** Fields of a row, at any depth, whose values are shared. Each holds an object, a list or null. */
const sharedFields: ReadonlySet<string> = new Set([
  ...["policies", "labels", "agents", "excluded", "matches", "causes", "phases", "verdict"],
  ...["by_class", "uncounted", "prompts", "outcomes", "omitted", "continuity", "routing", "teacher", "damaged", "tolerant"],
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

  /** The values that got their numbers since the last call, in order. */
  takeNew(): unknown[] {
    const taken = this.#new;
    this.#new = [];
    return taken;
  }
}

/** A copy of the row with numbers in the place of shared values. */
export function namedValues(row: object, shared: SharedValues): object {
  return Object.fromEntries(
    Object.entries(row).map(([name, value]: [string, unknown]) => {
      if (sharedFields.has(name)) return [name, shared.numberOf(value)];
      return [name, isPart(value) ? namedValues(value, shared) : value];
    }),
  );
}

/** Puts the values in the place of their numbers, in the row itself. */
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
