import { AlidadeError } from "../../base/errors.ts";

/** As many as a person reads. */
const mostListed = 20;

/** What ends a verb that has no task left: the reasons of all of them as one error. A single one is thrown as it is. */
export function noneLeft(errors: readonly [AlidadeError, ...AlidadeError[]]): AlidadeError {
  const [first, ...others] = errors;
  if (others.length === 0) return first;
  const left = errors.length - mostListed;
  const lines = [...errors.slice(0, mostListed).map(({ message }) => message), ...(left > 0 ? [`and ${left} more`] : [])];
  const message = `no task is left of ${errors.length}, for each has its reason:\n  ${lines.join("\n  ")}`;
  return new AlidadeError(first.code, message, { cause: first, param: first.param });
}

export function isSome<T>(all: readonly T[]): all is readonly [T, ...T[]] {
  return all.length > 0;
}
