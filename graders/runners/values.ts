/**
 * Values as they cross between the tests and the work where those are two processes (peer.ts). Data is copied: what
 * arrives is made anew, of the receiver's own classes, so an object that equals everything does not arrive as one.
 * Functions, promises and instances of classes stay where they are and cross as a number.
 *
 * A value is a list of its containers, each with its items or their places in the list: so values may be deep and may
 * hold themselves.
 */

import { Buffer } from "node:buffer";

/** What stands for things that stay: `export` gives one of ours a number, `import` makes a stand-in for one of theirs. */
export type Held = {
  export(value: object, kind: HeldKind): number;
  import(id: number, kind: HeldKind, name: string): object;
  /** The number under which the other side knows a stand-in of ours; null: it is no stand-in. */
  idOf(value: object): number | null;
  /** One of ours, by the number that it was given. Throws for another number. */
  own(id: number): object;
};
export type HeldKind = "function" | "object" | "promise";

type WireLeaf = null | boolean | number | string | { [tag: string]: unknown };
/** A value as JSON: what it is, and the containers in it. */
export type Wire = { root: WireLeaf; nodes: { [tag: string]: unknown }[] };

const byName = <T extends { name: string }>(list: T[]): Map<string, T> => new Map(list.map((one) => [one.name, one]));
const errors = byName<ErrorConstructor>([Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError]);
const arrays = byName<new (bytes: ArrayBuffer) => object>([
  ...[Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array, Uint32Array, Float32Array, Float64Array],
]);
const prototypes = new Map<string, object>(
  [Object, Function, Array, Error, Promise, Map, Set, Date, RegExp].map((one) => [one.name, one.prototype]),
);

export function encode(value: unknown, held: Held): Wire {
  const places = new Map<object, number>();
  const found: object[] = [];
  const leaf = (one: unknown): WireLeaf => {
    if (one === null || typeof one === "boolean" || typeof one === "string") return one;
    if (typeof one === "number" && Number.isFinite(one) && !Object.is(one, -0)) return one;
    return typeof one === "object" || typeof one === "function" ? thing(one) : scalar(one);
  };
  const thing = (one: object): WireLeaf => {
    const known = held.idOf(one);
    if (known !== null) return { yours: known };
    if (typeof one === "function") return { function: held.export(one, "function"), name: nameOf(one) };
    const place = places.get(one) ?? found.push(one) - 1;
    places.set(one, place);
    return { at: place };
  };
  const root = leaf(value);
  const nodes: Wire["nodes"] = [];
  // `found` grows while it is walked.
  for (const one of found) nodes.push(node(one, leaf, held));
  return { root, nodes };
}

function scalar(one: unknown): WireLeaf {
  if (typeof one === "number") return { number: Object.is(one, -0) ? "-0" : String(one) };
  if (typeof one === "bigint") return { bigint: String(one) };
  return typeof one === "symbol" ? symbolOut(one) : { undefined: true };
}

function symbolOut(symbol: symbol): WireLeaf {
  const name = (symbol.description ?? "").replace(/^Symbol\./, "");
  if (Object.getOwnPropertyDescriptor(Symbol, name)?.value === symbol) return { symbol: name };
  return { symbolFor: Symbol.keyFor(symbol) ?? name };
}

function nameOf(one: unknown): string {
  return typeof one === "function" ? String(one.name) : "";
}

function node(one: object, leaf: (one: unknown) => WireLeaf, held: Held): { [tag: string]: unknown } {
  for (const [name, prototype] of prototypes) if (one === prototype) return { prototype: name };
  if (Array.isArray(one)) return { array: Array.from(one, (item, at) => (at in one ? leaf(item) : { hole: true })) };
  if (one instanceof Promise) return { promise: held.export(one, "promise") };
  if (one instanceof Date) return { date: Number.isNaN(one.getTime()) ? null : one.getTime() };
  if (one instanceof RegExp) return { regexp: one.source, flags: one.flags };
  if (one instanceof Map) return { map: [...one].map(([key, item]) => [leaf(key), leaf(item)]) };
  if (one instanceof Set) return { set: [...one].map(leaf) };
  if (Buffer.isBuffer(one)) return { buffer: one.toString("base64") };
  if (ArrayBuffer.isView(one) && arrays.has(one.constructor.name))
    return { bytes: Buffer.from(one.buffer, one.byteOffset, one.byteLength).toString("base64"), of: one.constructor.name };
  if (one instanceof Error) return errorOut(one, leaf, held);
  const prototype = Object.getPrototypeOf(one) as unknown;
  if (prototype === null || prototype === Object.prototype) return { object: fields(one, leaf), bare: prototype === null };
  return { instance: held.export(one, "object"), name: nameOf(one.constructor) };
}

function fields(one: object, leaf: (one: unknown) => WireLeaf, without: string[] = []): [string, WireLeaf][] {
  const keys = Object.keys(one).filter((key) => !without.includes(key));
  return keys.map((key) => [key, leaf((one as Record<string, unknown>)[key])]);
}

function errorOut(one: Error, leaf: (one: unknown) => WireLeaf, held: Held): { [tag: string]: unknown } {
  const kinds = [...errors].filter(([name, kind]) => name !== "Error" && one instanceof kind);
  return {
    error: held.export(one, "object"),
    of: kinds[0]?.[0] ?? "Error",
    name: String(one.name),
    message: String(one.message),
    stack: String(one.stack),
    fields: fields(one, leaf, ["name", "message", "stack"]),
  };
}

/** Throws a TypeError for what `encode` does not write. `remember`: an error keeps the number that it has over there. */
export function decode(wire: unknown, held: Held, remember: (error: object, id: number) => void): unknown {
  const { root, nodes } = wire as Wire;
  const made = list(nodes).map((one) => makeNode(one as Node, held, remember));
  const read = (one: unknown): unknown => {
    if (one === null || typeof one !== "object") return one;
    const leaf = one as Node;
    return Object.hasOwn(leaf, "at") ? made[Number(leaf.at)] : readWireLeaf(leaf, held);
  };
  nodes.forEach((one, at) => {
    fill(made[at] as object, one, read);
  });
  return read(root);
}

type Node = { [tag: string]: unknown };

function tagOf(one: Node): string {
  return Object.keys(one)[0] ?? "";
}

function unknownKind(tag: string): TypeError {
  return new TypeError(`the other process sent a value of no known kind: ${tag.slice(0, 40)}`);
}

function list(value: unknown): unknown[] {
  if (!Array.isArray(value)) throw new TypeError("the other process sent no list where one belongs");
  return value;
}

function readWireLeaf(leaf: Node, held: Held): unknown {
  const tag = tagOf(leaf);
  const value = leaf[tag];
  if (tag === "undefined") return undefined;
  if (tag === "number") return Number(value);
  if (tag === "bigint") return BigInt(String(value));
  if (tag === "symbol") return Object.getOwnPropertyDescriptor(Symbol, String(value))?.value;
  if (tag === "symbolFor") return Symbol.for(String(value));
  if (tag === "yours") return held.own(Number(value));
  if (tag === "function") return held.import(Number(value), "function", String(leaf.name));
  throw unknownKind(tag);
}

function makeNode(node: Node, held: Held, remember: (error: object, id: number) => void): object {
  const tag = tagOf(node);
  const value = node[tag];
  if (tag === "prototype") return prototypes.get(String(value)) ?? Object.prototype;
  if (tag === "array") return new Array(list(value).length);
  if (tag === "object") return node.bare === true ? Object.create(null) : {};
  if (tag === "map") return new Map();
  if (tag === "set") return new Set();
  if (tag === "promise") return held.import(Number(value), "promise", "");
  if (tag === "instance") return held.import(Number(value), "object", String(node.name));
  if (tag === "date") return new Date(value === null ? Number.NaN : Number(value));
  if (tag === "regexp") return new RegExp(String(value), String(node.flags));
  if (tag === "buffer") return Buffer.from(String(value), "base64");
  if (tag === "bytes") return new (arrays.get(String(node.of)) ?? Uint8Array)(Uint8Array.from(Buffer.from(String(value), "base64")).buffer);
  if (tag !== "error") throw unknownKind(tag);
  const error = new (errors.get(String(node.of)) ?? Error)(String(node.message));
  remember(error, Number(value));
  if (String(node.name) !== error.name) define(error, "name", String(node.name), false);
  define(error, "stack", String(node.stack), false);
  return error;
}

function fill(made: object, node: Node, read: (one: unknown) => unknown): void {
  const tag = tagOf(node);
  if (tag === "array")
    list(node.array).forEach((item, at) => {
      const isHole = item !== null && typeof item === "object" && Object.hasOwn(item, "hole");
      if (!isHole) (made as unknown[])[at] = read(item);
    });
  else if (tag === "map") for (const pair of list(node.map)) (made as Map<unknown, unknown>).set(read(list(pair)[0]), read(list(pair)[1]));
  else if (tag === "set") for (const item of list(node.set)) (made as Set<unknown>).add(read(item));
  else if (tag === "object" || tag === "error")
    for (const pair of list(node[tag === "object" ? "object" : "fields"])) define(made, String(list(pair)[0]), read(list(pair)[1]), true);
}

function define(target: object, key: string, value: unknown, enumerable: boolean): void {
  Object.defineProperty(target, key, { value, writable: true, enumerable, configurable: true });
}
