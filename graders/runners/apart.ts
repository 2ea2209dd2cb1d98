/**
 * The work in a process of its own, from the tests' side. What a test imports of the workdir is a module whose exports
 * stand for those of the work: data is copied, and a function is called over there. So the work sees no test, no
 * assertion and no framework, and what it returns is compared here.
 */
import assert from "node:assert";
import { accessSync, constants, statSync, writeSync } from "node:fs";
import { dirname, join, sep } from "node:path";
import { type Elsewhere, loadFromMemory, type MemoryFiles } from "./memory-files.ts";
import { Peer } from "./peer.ts";
import type { HeldKind } from "./values.ts";

/** Exports by name. */
type Module = { commonjs: true; value: unknown } | { commonjs: false; names: [string, unknown][] };

const registryKey = Symbol.for("alidade.apart");

/** `changed`: paths from the workdir that the work added or changed: none of them is loaded here. */
export function loadApart(memory: MemoryFiles, socket: string, changed: string[]): void {
  const workdir = process.cwd();
  const works = new Set(changed.map((path) => join(workdir, path)));
  const peer = new Peer({
    socket,
    role: "tests",
    ops: new Map<string, (target: object | null, args: unknown[]) => unknown>([
      ["apply", (target, args) => Reflect.apply(target as () => unknown, args[0], args[1] as unknown[])],
      ["await", (target) => target],
    ]),
    standIn,
    mayExport: (value, kind) => {
      if (kind !== "object" || value instanceof Error) return;
      // An error could be what the test expects of the work.
      endUnfinished(`an instance of ${value.constructor?.name || "a class"} of the tests cannot be handed to work that runs apart`);
    },
    // With it the work could learn what a test compares with, swallow it, and answer again.
    keepsBack: (error, isAsked) => {
      if (!(error instanceof assert.AssertionError)) return false;
      if (!isAsked) endUnfinished(`an assertion failed in a function that the work called later: ${error.message}`);
      return true;
    },
    closed: () => {},
  });
  const modules = new Map<string, Module>();
  Object.defineProperty(globalThis, registryKey, { value: modules });
  const elsewhere: Elsewhere = (path, how) => {
    if (!path.startsWith(workdir + sep)) {
      if (mayBeMade(path, workdir)) endUnfinished(`the tests load ${path}, which the work may write while it runs`);
      return null;
    }
    const isDependency = path.slice(workdir.length).split(sep).includes("node_modules");
    if (isDependency && works.has(path)) throw new Error(`the work changed ${path}, which the tests load as their own dependency`);
    if (isDependency || path.endsWith(".json")) return null;
    const key = `${how} ${path}`;
    const module = moduleOf(peer.ask(how, null, path));
    modules.set(key, module);
    return module.commonjs ? asCommonjs(key) : asModule(key, module.names);
  };
  loadFromMemory(memory, elsewhere);
}

/** All users may write. */
const worldWritable = 0o002;

/** Links of a work lead out of the workdir: to what its process makes in folders for all, and to what the kernel says of it. */
function mayBeMade(path: string, workdir: string): boolean {
  if (path.startsWith("/proc/")) return true;
  for (let at = path; !(workdir + sep).startsWith(at === sep ? sep : at + sep); at = dirname(at))
    if ((statSync(at).mode & worldWritable) !== 0 && !isReadOnly(at)) return true;
  return false;
}

/** A mounted folder has the modes that it has on its own machine. */
function isReadOnly(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return false;
  } catch {
    return true;
  }
}

const registry = (key: string): string => `globalThis[Symbol.for("alidade.apart")].get(${JSON.stringify(key)})`;

function asCommonjs(key: string) {
  return { format: "commonjs", source: `module.exports = ${registry(key)}.value;`, shortCircuit: true } as const;
}

/** What the work says may be a stand-in of its own, whose methods are the work's: nothing of that comes into the source. */
function moduleOf(answer: unknown): Module {
  const { commonjs, value, names } = Object(answer) as { commonjs?: unknown; value?: unknown; names?: unknown };
  if (commonjs === true) return { commonjs, value };
  const isNamed = (one: unknown): one is [string, unknown] => Array.isArray(one) && typeof one[0] === "string";
  if (!Array.isArray(names) || !names.every(isNamed)) throw new TypeError("the process of the work sent no module");
  return { commonjs: false, names };
}

function asModule(key: string, exported: [string, unknown][]) {
  const lines = exported.map(([name], at) => `const e${at} = names[${at}][1]; export { e${at} as ${JSON.stringify(name)} };`);
  return { format: "module", source: `const { names } = ${registry(key)};\n${lines.join("\n")}`, shortCircuit: true } as const;
}

/** The report stays without its last row, so that no test counts. */
function endUnfinished(why: string): never {
  writeSync(2, `${why}: where the task is right, let it say work_runs: together\n`);
  return process.exit(1);
}

function standIn(peer: Peer, id: number, kind: HeldKind, name: string): object {
  if (kind === "promise") return peer.later("await", id);
  // A bound function can be called and constructed, and has no property that a proxy must repeat.
  const target =
    kind === "function"
      ? (() => {
          const made = ((): void => {}).bind(null);
          Object.defineProperty(made, "name", { value: name, configurable: true });
          return made;
        })()
      : {};
  return new Proxy(target, {
    apply: (_, self, args) => peer.ask("apply", id, self, args),
    construct: (_, args) => peer.ask("construct", id, args) as object,
    get: (_, key) => peer.ask("get", id, key),
    set: (_, key, value) => Boolean(peer.ask("set", id, key, value)),
    has: (_, key) => Boolean(peer.ask("has", id, key)),
    deleteProperty: (_, key) => Boolean(peer.ask("delete", id, key)),
    ownKeys: () => peer.ask("keys", id) as string[],
    getOwnPropertyDescriptor: (_, key) => descriptor(peer.ask("descriptor", id, key)),
    getPrototypeOf: () => peer.ask("prototype", id) as object | null,
  });
}

function descriptor(found: unknown): PropertyDescriptor | undefined {
  if (found === undefined) return undefined;
  const { value, enumerable } = found as { value: unknown; enumerable: boolean };
  return { value, enumerable, writable: true, configurable: true };
}
