/**
 * Keeps what tests assert with as it was, where the work is loaded into the same process: the assertions are frozen, and
 * what a test goes through is looked at again when it ends. It finds changes of these objects and of no others.
 */
import assert from "node:assert";
import { EventEmitter } from "node:events";
import nodeTest from "node:test";

/** What a comparison or a test goes through. */
const watched: object[] = [
  assert,
  assert.strict,
  assert.AssertionError.prototype,
  nodeTest,
  EventEmitter.prototype,
  ...[Object, Function, Array, Promise, Map, Set, RegExp, String, Number, Date, Error].flatMap((one) => [one, one.prototype]),
];

/** Freezes the assertions, and returns what says whether everything is still as it was. */
export function guardFramework(): () => boolean {
  // Taken now: the work may replace them.
  const { getOwnPropertyDescriptors, is } = Object;
  const keys = Reflect.ownKeys;
  const before = watched.map((one) => getOwnPropertyDescriptors(one) as Record<PropertyKey, PropertyDescriptor>);
  for (const one of [assert, assert.strict, assert.AssertionError.prototype, nodeTest]) Object.freeze(one);
  const sameProperty = (a: PropertyDescriptor | undefined, b: PropertyDescriptor | undefined): boolean =>
    a !== undefined && b !== undefined && is(a.value, b.value) && is(a.get, b.get) && is(a.set, b.set);
  return () => {
    for (let at = 0; at < watched.length; at++) {
      const now = getOwnPropertyDescriptors(watched[at] as object) as Record<PropertyKey, PropertyDescriptor>;
      const then = before[at] as Record<PropertyKey, PropertyDescriptor>;
      const names = keys(then);
      for (let index = 0; index < names.length; index++) {
        const name = names[index] as string;
        // The last match of a regular expression, and what captures stacks, change in honest code.
        if (!changing.has(name) && !sameProperty(then[name], now[name])) return false;
      }
    }
    return true;
  };
}

const changing = new Set<PropertyKey>([
  ...["input", "$_", "lastMatch", "$&", "lastParen", "$+", "leftContext", "$`", "rightContext", "$'"],
  ...["$1", "$2", "$3", "$4", "$5", "$6", "$7", "$8", "$9", "stackTraceLimit", "prepareStackTrace"],
]);
