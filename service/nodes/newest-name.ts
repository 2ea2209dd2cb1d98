/** The last name that was given to an engine's weights. */
import type { PolicyName } from "../ledger/index.ts";

/** `isPolicy`: it is one of the engines that serve the policy. */
export function newestName(names: readonly PolicyName[], engine: string, isPolicy: boolean): PolicyName | null {
  const own = names.filter(({ engines }) => (engines === null ? isPolicy : engines.includes(engine)));
  return own.toSorted((one, other) => other.order - one.order)[0] ?? null;
}
