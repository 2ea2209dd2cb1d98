/**
 * What our configuration of a harness sets, as data. The configuration is made of it, and so is the table in
 * docs/harnesses.md: neither can say what the other does not.
 */
import type { HarnessContext, HarnessTools } from "./harness-context.ts";

/** What a person's own command line is configured by: it has its own instruction and program. */
export type SettingContext = Omit<HarnessContext, "instruction" | "pack">;

export type SettingValue = string | number | boolean | readonly SettingValue[] | { readonly [key: string]: SettingValue | undefined };

export type Setting = {
  /** `env` is a variable and `argv` an option. Anything else is the path of a file below HOME. */
  place: string;
  /** The variable, the option, or the path of keys in the file, joined by dots. */
  key: string;
  /** A function where it depends on the run: undefined is not set. */
  value: SettingValue | ((context: SettingContext) => SettingValue | undefined);
  /** For the page, where `value` is a function. */
  says?: string;
  /** agent: what the agent can do, is told and remembers. run: how it runs unattended. address: which model it calls, and where. */
  about: (typeof settingTopics)[number];
  /** A part of a sentence. */
  why: string;
  /** Set in runs alone, or for `alidade record` alone. Absent: in both. */
  only?: "run" | "record";
};

/** Nothing that one rollout leaves in its home is found by another one. */
export const ownHome: Setting = {
  place: "env",
  key: "HOME",
  value: ({ home }) => home,
  says: "the rollout's home",
  about: "run",
  why: "each rollout has its own",
  only: "run",
};

/** What a harness is told of the servers of tools: an entry of each under its name. undefined where there are none. */
export function toolServers(entryOf: (server: HarnessTools) => SettingValue): (context: SettingContext) => SettingValue | undefined {
  return ({ tools = [] }) => (tools.length === 0 ? undefined : Object.fromEntries(tools.map((server) => [server.name, entryOf(server)])));
}

/** A setting that only tasks with servers of tools need. */
export function withTools(value: SettingValue): (context: SettingContext) => SettingValue | undefined {
  return ({ tools = [] }) => (tools.length === 0 ? undefined : value);
}

/** A setting for tasks with a user: given in each run of the harness after the first. */
export function whenGoingOn(value: SettingValue): (context: SettingContext) => SettingValue | undefined {
  return ({ dialogue }) => (dialogue === "goes_on" ? value : undefined);
}

/** An option that tells the harness to keep no conversation. */
export function keepsNone(key: string): Setting {
  return {
    place: "argv",
    key,
    value: ({ dialogue }) => (dialogue === undefined ? true : undefined),
    says: "given, unless the task has a user",
    about: "run",
    why: "no session is kept that another rollout could go on with",
    only: "run",
  };
}

/** An option by which a harness goes on with its last conversation. */
export function goesOn(key: string, value: string | true = true): Setting {
  return {
    place: "argv",
    key,
    value: whenGoingOn(value),
    says: `${value === true ? "given" : `\`${value}\``}, at each later message of the task's user`,
    about: "agent",
    why: "its next message, in a process of its own",
    only: "run",
  };
}

/** Longer than a call may take at the relay, which says it itself. */
export const toolTimeoutSeconds = 600;

export const settingTopics = ["agent", "run", "address"] as const;

/** The settings of one use, with their values in this place. */
export class HarnessConfiguration {
  readonly #all: { place: string; key: string; value: SettingValue }[];

  constructor(settings: readonly Setting[], use: "run" | "record", context: SettingContext) {
    this.#all = settings
      .filter(({ only }) => only === undefined || only === use)
      .map(({ place, key, value }) => ({ place, key, value: typeof value === "function" ? value(context) : value }))
      .filter((setting): setting is { place: string; key: string; value: SettingValue } => setting.value !== undefined);
  }

  /** The variables. */
  env(): Record<string, string> {
    return Object.fromEntries(this.#of("env").map(({ key, value }) => [key, String(value)]));
  }

  /** The options, in the order in which they are listed; one whose value is true has no argument. */
  argv(): string[] {
    return this.#of("argv").flatMap(({ key, value }) => (value === true ? [key] : [key, String(value)]));
  }

  /** A file of JSON. */
  json(path: string): string {
    return jsonText(this.#tree(path));
  }

  /** A file of TOML; the last part of a key is the name in its table. */
  toml(path: string): string {
    const tables = new Map<string, string[]>();
    for (const { key, value } of this.#of(path)) {
      const at = key.lastIndexOf(".");
      const table = key.slice(0, Math.max(at, 0));
      const line = `${key.slice(at + 1)} = ${tomlValue(value)}\n`;
      tables.set(table, [...(tables.get(table) ?? []), line]);
    }
    // What is in no table stands first, else it would belong to the one in front of it.
    const sorted = [...tables].toSorted(([one], [other]) => Number(one !== "") - Number(other !== ""));
    return sorted.map(([table, lines]) => (table === "" ? "" : `[${table}]\n`) + lines.join("")).join("\n");
  }

  #of(place: string): { key: string; value: SettingValue }[] {
    return this.#all.filter((setting) => setting.place === place);
  }

  #tree(path: string): SettingTree {
    const root: SettingTree = {};
    for (const { key, value } of this.#of(path)) {
      const parts = key.split(".");
      const last = parts.pop() ?? "";
      let at = root;
      for (const part of parts) at = branchOf(at, part);
      at[last] = value;
    }
    return root;
  }
}

/** A list and a table stand on one line. */
function tomlValue(value: SettingValue | undefined): string {
  if (typeof value === "string") return tomlString(value);
  if (Array.isArray(value)) return `[${value.map(tomlValue).join(", ")}]`;
  if (typeof value !== "object") return String(value);
  const entries = Object.entries(value).filter(([, one]) => one !== undefined);
  return `{ ${entries.map(([key, one]) => `${tomlString(key)} = ${tomlValue(one)}`).join(", ")} }`;
}

type SettingTree = { [key: string]: SettingValue | SettingTree };

function branchOf(tree: SettingTree, part: string): SettingTree {
  const known = tree[part];
  if (known !== undefined) return known as SettingTree;
  const branch: SettingTree = {};
  tree[part] = branch;
  return branch;
}

export function jsonText(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

/** A JSON string is a TOML basic string but for DEL, which TOML wants escaped. */
export function tomlString(text: string): string {
  return JSON.stringify(text).replaceAll("\u007f", "\\u007F");
}
