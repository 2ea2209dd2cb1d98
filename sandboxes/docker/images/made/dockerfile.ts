/** What a Dockerfile asks for: the images that it starts from, and what a builder must know. Read line by line; nothing of it runs. */
import { posix } from "node:path";
import type { Build } from "../../../../base/schema/environment/build.ts";

type Instruction = { word: string; rest: string; line: number };

const heredoc = /(?<!<)<<-?\s*(["']?)([A-Za-z_]\w*)\1/g;

/** Instructions with their continued lines joined, without the text of heredocs. */
function instructions(text: string): Instruction[] {
  const found: Instruction[] = [];
  let begun = null as Instruction | null;
  let ends: string[] = [];
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    if (ends.length > 0) {
      if (line.replace(/^\t+/, "") === ends[0]) ends = ends.slice(1);
      continue;
    }
    if (/^\s*(?:#|$)/.test(line)) continue;
    const isContinued = /\\\s*$/.test(line);
    const part = line.replace(/\\\s*$/, " ").trim();
    begun = begun === null ? toInstruction(part, index + 1) : { ...begun, rest: `${begun.rest} ${part}` };
    if (isContinued) continue;
    found.push(begun);
    ends = marksOf(begun);
    begun = null;
  }
  return begun === null ? found : [...found, begun];
}

function toInstruction(text: string, line: number): Instruction {
  const [, word = "", rest = ""] = /^(\S+)\s*(.*)$/s.exec(text) ?? [];
  return { word: word.toUpperCase(), rest, line };
}

/** The words that end an instruction's heredocs. */
function marksOf({ word, rest }: Instruction): string[] {
  return ["RUN", "COPY", "ADD"].includes(word) ? [...rest.matchAll(heredoc)].map((match) => match[2] ?? "") : [];
}

/** The image of the `# syntax` line, which says what reads the file; null without one. It must stand above everything else. */
export function syntaxOf(text: string): string | null {
  for (const line of text.replace(/^\ufeff/, "").split(/\r?\n/)) {
    const [, name, value] = /^\s*#\s*(\w+)\s*=\s*(\S+)\s*$/.exec(line) ?? [];
    if (name === undefined) return null;
    if (name.toLowerCase() === "syntax") return value ?? null;
  }
  return null;
}

export type Unbuildable = { line: number; what: string };

/** Heredocs. A BuildKit of before 2021 does not know them either. */
export function heredocsOf(text: string): Unbuildable[] {
  return instructions(text)
    .filter((instruction) => marksOf(instruction).length > 0)
    .map(({ word, line }) => ({ line, what: `a heredoc (${word} <<…)` }));
}

/** What the classic builder does not know. Its own messages name a place and not the cause. */
export function beyondClassic(text: string): Unbuildable[] {
  const flagged = instructions(text).flatMap(({ word, rest, line }) => {
    const own = word === "RUN" ? /^--(mount|network|security)\b/ : /^(?:--\S+\s+)*--(link|chmod|checksum|exclude|parents|keep-git-dir)\b/;
    const flag = ["RUN", "COPY", "ADD"].includes(word) ? own.exec(rest)?.[1] : undefined;
    return flag === undefined ? [] : [{ line, what: `${word} --${flag}` }];
  });
  const syntax = syntaxOf(text);
  const foreign = syntax !== null && !/^(?:docker\.io\/)?docker\/dockerfile(?::|$)/.test(syntax);
  return [...(foreign ? [{ line: 1, what: `# syntax=${syntax}` }] : []), ...heredocsOf(text), ...flagged];
}

/**
 * The images that a build takes from a registry or from the engine: of FROM and COPY --from, without the build's own stages.
 * A name in which a variable has no known value is left out; the builder finds it.
 */
export function imagesOf(text: string, args: Build["args"]): { image: string; platform: string | null }[] {
  const values = new Map<string, string>();
  const stages = new Set<string>(["scratch"]);
  const found = new Map<string, { image: string; platform: string | null }>();
  const add = (name: string, platform: string | null): void => {
    const image = withValues(name, values);
    if (image === null || image === "" || /^\d+$/.test(image) || stages.has(image.toLowerCase())) return;
    found.set(`${image} ${platform}`, { image, platform });
  };
  let isGlobal = true;
  for (const { word, rest } of instructions(text)) {
    if (word === "ARG" && isGlobal) setArgument(rest, args, values);
    if (word === "FROM") {
      isGlobal = false;
      const [, platform, name = "", , stage] = /^(?:--platform=(\S+)\s+)?(\S+)(\s+as\s+(\S+))?/i.exec(rest) ?? [];
      if (platform === undefined) add(name, null);
      else if (!platform.includes("$")) add(name, platform);
      if (stage !== undefined) stages.add(stage.toLowerCase());
    }
    const from = word === "COPY" ? /^(?:--\S+\s+)*--from=(\S+)/.exec(rest)?.[1] : undefined;
    if (from !== undefined) add(from, null);
  }
  return [...found.values()];
}

function setArgument(rest: string, args: Build["args"], values: Map<string, string>): void {
  const [, name = "", , value] = /^(\w+)(=(.*))?$/s.exec(rest) ?? [];
  const given = Object.hasOwn(args, name) ? args[name] : value?.replace(/^(["'])(.*)\1$/s, "$2");
  if (given !== undefined) values.set(name, withValues(given, values) ?? given);
}

/** null where a variable has no known value. */
function withValues(text: string, values: Map<string, string>): string | null {
  let isKnown = true;
  const result = text.replace(/\$(?:(\w+)|\{(\w+)(?::-([^}]*))?\})/g, (_, plain?: string, braced?: string, otherwise?: string) => {
    const value = values.get(plain ?? braced ?? "") || otherwise;
    if (value === undefined) isKnown = false;
    return value ?? "";
  });
  return isKnown && !result.includes("$") ? result : null;
}

/** How the last stage starts: null where it is as in the image that it begins with. */
export type LastStage = { from: string | null; workdir: string | null; user: string | null };

/** WORKDIR and USER of the last stage; a value with a variable, and a relative WORKDIR behind an unknown one, are null. */
export function lastStageOf(text: string, args: Build["args"] = {}): LastStage {
  const values = new Map<string, string>();
  const stages = new Map<string, LastStage>();
  let stage: LastStage = { from: null, workdir: null, user: null };
  for (const { word, rest } of instructions(text)) {
    if (word === "ARG") setArgument(rest, args, values);
    if (word === "ENV") setArgument(rest.replace(/^(\w+)\s+/, "$1="), {}, values);
    if (word === "FROM") {
      const [, , name = "", , own] = /^(?:--platform=(\S+)\s+)?(\S+)(\s+as\s+(\S+))?/i.exec(rest) ?? [];
      const from = withValues(name, values);
      stage = { ...(stages.get(from?.toLowerCase() ?? "") ?? { from, workdir: null, user: null }) };
      if (own !== undefined) stages.set(own.toLowerCase(), stage);
    }
    const value = withValues(rest.trim().replace(/^(["'])(.*)\1$/s, "$2"), values);
    if (word === "USER") stage.user = value?.split(":")[0] ?? null;
    if (word === "WORKDIR") stage.workdir = value === null ? null : posix.resolve(stage.workdir ?? "/", value);
  }
  return stage;
}
