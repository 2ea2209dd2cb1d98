/** What is the same in all dialects where one request asks for several samples. */
import type { JsonObject } from "../../base/schema/message.ts";
import type { AnswerContext } from "./dialect.ts";
import { isObject } from "./edge.ts";

/** Its place in an answer with several: each is a call of its own, and its record says which. */
export function choiceIndex({ native }: AnswerContext): number {
  return isObject(native.choice) && typeof native.choice.index === "number" ? native.choice.index : 0;
}

/** With one seed all samples of a prompt would be the same; servers that sample several add their numbers to it, too. */
export function seeded(seed: unknown, sample: number): JsonObject {
  return typeof seed === "number" ? { seed: seed + sample } : {};
}

/** Number by number; null where one of them is unknown. */
export function sum(values: readonly unknown[]): JsonObject | null {
  if (values.length === 0 || !values.every(isObject)) return null;
  const keys = Object.keys(values[0] ?? {}).filter((key) => values.every((value) => Object.hasOwn(value, key)));
  return Object.fromEntries(
    keys.map((key) => {
      const parts = values.map((value) => value[key]);
      return [key, parts.every((part) => typeof part === "number") ? parts.reduce((total, part) => total + part, 0) : sum(parts)];
    }),
  );
}
