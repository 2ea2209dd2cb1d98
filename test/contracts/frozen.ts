/** The value, and nothing in it can be changed any more: a write throws. */
export function frozen<T>(value: T): T {
  if (value === null || typeof value !== "object") return value;
  for (const inner of Object.values(value)) frozen(inner);
  return Object.freeze(value);
}
