/** One bad task is left out, and the others are loaded. */
import { AlidadeError, messageOf } from "../base/errors.ts";
import { taskError } from "./task-error.ts";
import type { LoadOptions } from "./task-format.ts";

/**
 * What `load` makes of each, in their order. The error of one that it throws for goes to `onLeftOut`; without that the first
 * error ends the load. `nameOf`: the file and the place in it, for an error that names none.
 */
export async function loadEach<From, To>(
  all: readonly From[],
  nameOf: (one: From) => string,
  load: (one: From) => Promise<To>,
  { onLeftOut, signal }: Pick<LoadOptions, "onLeftOut" | "signal">,
): Promise<To[]> {
  const loaded = await Promise.allSettled(all.map(load));
  return loaded.flatMap((one, index) => {
    if (one.status === "fulfilled") return [one.value];
    signal?.throwIfAborted();
    const error = named(one.reason, nameOf(all[index] as From));
    if (!onLeftOut) throw error;
    onLeftOut(error);
    return [];
  });
}

/** What nothing foresaw in one task is no reason against the others either. */
function named(reason: unknown, name: string): AlidadeError {
  return reason instanceof AlidadeError
    ? reason
    : taskError(name, "the task", `cannot be loaded (${messageOf(reason)}): mend or remove it`);
}
