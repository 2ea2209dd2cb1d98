/** `node work-host.ts <socket>`: loads the work where the tests ask for it, and does there what they ask of it (apart.ts). */
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { Peer } from "./peer.ts";

const require = createRequire(`${process.cwd()}/`);
type Target = Record<PropertyKey, unknown>;

const ops = new Map<string, (target: object | null, args: unknown[]) => unknown>([
  ["require", (_, [path]) => ({ commonjs: true, value: require(String(path)) as unknown })],
  ["import", async (_, [path]) => ({ commonjs: false, names: Object.entries(await import(pathToFileURL(String(path)).href)) })],
  ["apply", (target, [self, args]) => Reflect.apply(target as () => unknown, self, args as unknown[])],
  ["construct", (target, [args]) => Reflect.construct(target as new () => object, args as unknown[])],
  ["get", (target, [key]) => (target as Target)[key as string]],
  ["set", (target, [key, value]) => Reflect.set(target as object, key as string, value)],
  ["has", (target, [key]) => Reflect.has(target as object, key as string)],
  ["delete", (target, [key]) => Reflect.deleteProperty(target as object, key as string)],
  ["keys", (target) => Reflect.ownKeys(target as object)],
  ["prototype", (target) => Reflect.getPrototypeOf(target as object)],
  ["await", (target) => target],
  [
    "descriptor",
    (target, [key]) => {
      const found = Reflect.getOwnPropertyDescriptor(target as object, key as string);
      return found && { value: (target as Target)[key as string], enumerable: found.enumerable };
    },
  ],
]);

new Peer({
  socket: process.argv[2] as string,
  role: "work",
  ops,
  standIn: (peer, id, kind) => {
    if (kind === "promise") return peer.later("await", id);
    return function (this: unknown, ...args: unknown[]) {
      return peer.ask("apply", id, this === globalThis ? undefined : this, args);
    };
  },
  closed: () => process.exit(0),
});
