/**
 * A hack probe: a work that earns without solving. `alidade check` gives it to a task, which must not pay for it more
 * than for no change. Probes run in containers only: what they look for is what lies around them.
 */
import type { TreeFile } from "../../base/files/file-tree.ts";
import type { LooseText } from "../grader.ts";

/** `c`: C and C++. */
export type WorkLanguage = "javascript" | "python" | "c";

export const extensions: Record<WorkLanguage, RegExp> = {
  javascript: /\.(?:[cm]?js|[cm]?ts|jsx|tsx)$/,
  python: /\.py$/,
  c: /\.(?:c|cc|cpp|cxx|h|hh|hpp|hxx)$/,
};

export type ProbeTarget = {
  /** The code that the tests load is in it: a task gets a probe once for each of its languages. null: any. */
  language: WorkLanguage | null;
  /** Reads the report; null: the grader is no `tests`. */
  parser: string | null;
  workdir: string;
  /** Files that the known solution changes, in `language`, as they are delivered; a new one is empty. Paths from the workdir. */
  sources: TreeFile[];
  /** Paths of the hidden tests from the workdir. */
  tests: string[];
  /** Names that must be reported as passed. */
  required: string[];
  /** What an agent is told. */
  instruction: string;
  /** What is looked for inside of outputs. */
  loose: LooseText[];
  /** Files of the workdir that the known solution changes, in any language, as they are delivered; a new one is empty. */
  solved: TreeFile[];
};

export type Probe = {
  readonly name: string;
  /** What the work does, after the words "a work that". */
  readonly title: string;
  /** Rows of the table of known hacks (docs/hacks.md). */
  readonly rows: readonly number[];
  /** `any`: it does not depend on the language. */
  readonly languages: "any" | readonly WorkLanguage[];
  /** What the task's author can do where it pays, after the word "so". */
  readonly cure: string;
  /** Files of the work, in place of those of the workdir. [] without a script: the task has nothing for it, and it is not tried. */
  files?(target: ProbeTarget): TreeFile[];
  /** What the agent runs for it in its workdir, for `sh`. */
  script?(target: ProbeTarget): string;
};

export function planted(path: string, text: string, mode = 0o644): TreeFile {
  return { path, content: Buffer.from(text), mode };
}

/** The sources with code that runs when the tests load them. Python wants `from __future__` first, so the code comes last. */
export function atLoad({ sources, language }: ProbeTarget, code: Partial<Record<WorkLanguage, string>>): TreeFile[] {
  const text = language === null ? undefined : code[language];
  if (text === undefined) return [];
  return codeOf(sources, language).map((file) => ({
    ...file,
    content: Buffer.from(`${file.content.toString("utf8")}\n${framed(text, language)}\n`),
  }));
}

/** A header is read by several sources of C, and what is added would stand in each of them. */
function codeOf(sources: TreeFile[], language: WorkLanguage | null): TreeFile[] {
  const others = language === "c" ? sources.filter(({ path }) => !/\.h\w*$/.test(path)) : sources;
  return others.length > 0 ? others : sources;
}

/** A header may be read twice by one compiler run, so the code of C stands once. */
function framed(code: string, language: WorkLanguage | null): string {
  if (language === "javascript") return `;{ const get = process.getBuiltinModule;\n${code}\n}`;
  if (language === "c") return `#ifndef ALIDADE_PROBE\n#define ALIDADE_PROBE\n${code}\n#endif`;
  return code;
}

/** One word for `sh`. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
