/** One bad task is left out, and the others are loaded. */
import { AlidadeError } from "../errors.ts";
import type { LoadOptions } from "./task-format.ts";

/**
 * What `load` makes of each, in their order. One that it throws an AlidadeError for goes to `onLeftOut`; without that the
 * first error ends the load.
 */
export async function loadEach<From, To>(
  all: readonly From[],
  load: (one: From) => Promise<To>,
  { onLeftOut, signal }: LoadOptions,
): Promise<To[]> {
  const loaded = await Promise.allSettled(all.map(load));
  return loaded.flatMap((one) => {
    if (one.status === "fulfilled") return [one.value];
    signal?.throwIfAborted();
    if (!onLeftOut || !(one.reason instanceof AlidadeError)) throw one.reason;
    onLeftOut(one.reason);
    return [];
  });
}
