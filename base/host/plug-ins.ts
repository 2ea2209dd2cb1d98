/**
 * Plug-ins: those of a list under their names, and a user's own by the path of a file whose default export satisfies the
 * same interface. A path is an operator's word, from flags, the environment or the run file: it is code that is run.
 *
 *     const registry = registryOf<EngineKind>({ noun: "engine", param: "engine.kind", list: [vllm, sglang], members: { … } });
 *     registry.named("vllm");               // of the list
 *     await registry.load("./my-engine.ts"); // of the list, or a file
 */
import { isAbsolute, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { AlidadeError, type ErrorCode, messageOf } from "../errors.ts";

type MemberKind = "text" | "text or null" | "number" | "boolean" | "list" | "list or null" | "object" | "function";

/** What kind of value each member is; one that may be left out has a `?`. The compiler holds it against the interface. */
export type Members<T> = { readonly [K in keyof T]-?: Partial<Pick<T, K>> extends Pick<T, K> ? `${MemberKind}?` : MemberKind };

/** One statement of an interface's contract, for any plug-in of its kind: throws where it does not hold. */
export type ContractCheck<T, Context = object> = { readonly says: string; check(plugIn: T, context: Context): void | Promise<void> };

type Named = { readonly name: string };

export type Registry<T extends Named> = {
  /** What one is called in sentences. */
  readonly noun: string;
  readonly list: readonly T[];
  readonly members: Readonly<Record<string, string>>;
  /** Throws `plugin_unknown` with the names that there are. */
  named(name: string): T;
  /** The one of that name, or what the file at that path exports. Throws `plugin_invalid` in one sentence. */
  load(word: string): Promise<T>;
  /** What these files export, before the list. Throws `plugin_invalid` where two have one name. */
  with(files: readonly string[]): Promise<readonly T[]>;
};

export function registryOf<Loaded extends Named, T extends Loaded = Loaded>(options: {
  noun: string;
  /** Where an operator names one. */
  param: string;
  list: readonly T[];
  members: Members<Loaded>;
  /** The code of an unknown name, where it is a special one. */
  unknown?: ErrorCode;
  /** What is made of a file's export before it is used. */
  made?: (loaded: Loaded) => T;
}): Registry<T> {
  const { noun, param, list, members, unknown = "plugin_unknown", made = (loaded) => loaded as T } = options;
  const named = (name: string): T => namedIn(list, name, noun, param, unknown);
  const fromFile = async (file: string): Promise<T> => {
    const refuse = (why: string, cause?: unknown): never => {
      throw new AlidadeError("plugin_invalid", `${file} cannot be used as ${/^[aeiou]/.test(noun) ? "an" : "a"} ${noun}: ${why}`, {
        param,
        cause,
      });
    };
    const loaded = await defaultOf(file).catch((error: unknown) => refuse(`it cannot be loaded (${messageOf(error)})`, error));
    const why = whyNot(loaded, members);
    if (why !== null) return refuse(why);
    const plugIn = loaded as Loaded;
    if (list.some(({ name }) => name === plugIn.name))
      return refuse(`its name "${plugIn.name}" is that of a built-in one; give it another`);
    return made(plugIn);
  };
  return {
    noun,
    list,
    members,
    named,
    load: async (word) => (isFile(word) ? fromFile(word) : named(word)),
    async with(files) {
      const all = [...(await Promise.all(files.map(fromFile))), ...list];
      const twice = all.find((one, index) => all.findIndex(({ name }) => name === one.name) < index);
      if (twice)
        throw new AlidadeError("plugin_invalid", `two files are a ${noun} with the name "${twice.name}"; give one another`, { param });
      return all;
    },
  };
}

/** Throws `plugin_unknown`, or the code that is given, with the names that there are. */
export function namedIn<T extends Named>(
  list: readonly T[],
  name: string,
  noun: string,
  param: string,
  code: ErrorCode = "plugin_unknown",
): T {
  const found = list.find((each) => each.name === name);
  if (found) return found;
  throw new AlidadeError(code, `There is no ${noun} "${name}"; there are: ${list.map((each) => each.name).join(", ")}.`, { param });
}

/** A path in the place of a name: it begins as one, or ends as a file of code does. */
export function isFile(word: string): boolean {
  return isAbsolute(word) || /^\.\.?[\\/]|\.(?:ts|mts|js|mjs)$/.test(word);
}

/** The word with a path made absolute; a name stays as it is. */
export function fromFolder(word: string, folder: string): string {
  return isFile(word) ? resolve(folder, word) : word;
}

/** Throws what loading it throws. */
export async function defaultOf(file: string): Promise<unknown> {
  if (!/\.(?:ts|mts|js|mjs)$/.test(file)) throw new Error("give a file of TypeScript or JavaScript");
  const { promise: late, reject } = Promise.withResolvers<never>();
  // A timer that keeps the process: else one that waits for nothing would end it without a word.
  const timer = setTimeout(() => reject(new Error(`its top level was not done after ${loadSeconds} s`)), loadSeconds * 1_000);
  try {
    const module = (await Promise.race([import(pathToFileURL(resolve(file)).href), late])) as { default?: unknown };
    return module.default;
  } finally {
    clearTimeout(timer);
  }
}

/** What a file imports may come from a slow disk; one that waits for longer waits for ever. */
const loadSeconds = 60;

/** Names stand in records, in paths inside sandboxes and on terminals. */
const nameForm = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/** The first member that is missing or of another kind, in words; null: it has all of them. */
export function whyNot(value: unknown, members: Readonly<Record<string, string>>): string | null {
  if (value === null || typeof value !== "object") return "it has no default export that is an object";
  const object = value as Record<string, unknown>;
  for (const [name, kind] of Object.entries(members)) {
    const found = object[name];
    if (found === undefined && kind.endsWith("?")) continue;
    if (found === undefined) return `its default export has no member ${name} (a ${kind})`;
    if (!isOf(kind.replace("?", ""), found)) return `the member ${name} of its default export is no ${kind.replace("?", "")}`;
  }
  if (!nameForm.test(String(object.name)))
    return `its name "${String(object.name)}" must be 1 to 64 letters, digits, points, hyphens and underscores`;
  return null;
}

function isOf(kind: string, value: unknown): boolean {
  if (kind === "list") return Array.isArray(value);
  if (kind === "object") return typeof value === "object" && value !== null;
  if (kind.endsWith(" or null")) return value === null || isOf(kind.replace(" or null", ""), value);
  return typeof value === (kind === "text" ? "string" : kind);
}
