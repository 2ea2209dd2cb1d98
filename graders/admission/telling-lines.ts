/** Lines that tell a solution or a test from all else: by them a leak is found. */
import type { TreeFile } from "../../base/files/file-tree.ts";
import type { Leak } from "../../base/schema/admission.ts";
import type { ExpectedText } from "../grader.ts";

/** A shorter line (`return result;`) stands in many files by chance. */
const shortest = 24;
/** `grep` holds them all against each file. */
const mostLines = 200;
/** A name of a test that is shorter is a common word. */
const shortestName = 8;

/** An expected output that is shorter, or is one word or number, stands in many files by chance. */
const shortestOutput = 12;

export type TellingLines = { what: Leak["what"]; lines: string[] };

/** Lines of `after` that are in no file of `before`, trimmed, each once. */
export function linesOf(what: Leak["what"], before: readonly TreeFile[], after: readonly TreeFile[]): TellingLines {
  const known = new Set(before.flatMap(trimmedLines));
  const added = after.flatMap(trimmedLines).filter((line) => line.length >= shortest && /\w{3}/.test(line) && !known.has(line));
  return { what, lines: [...new Set(added)].slice(0, mostLines) };
}

/** The tests' own names, without file, class and suite, that no file of `before` has. */
export function namesOf(names: readonly string[], before: readonly TreeFile[]): TellingLines {
  const text = before.map(({ content }) => content.toString("latin1")).join("\n");
  const own = names.map((name) => (name.split(/::| > /).at(-1) ?? name).replace(/[[(].*$/s, "").trim());
  const telling = own.filter((name) => name.length >= shortestName && /[\W_]/.test(name) && !text.includes(name));
  return { what: "names", lines: [...new Set(telling)].slice(0, mostLines) };
}

/**
 * Lines of expected outputs that tell them: at least twelve characters in two words, neither in what the work is given for it nor
 * in the instruction, and together as long as one telling line of a solution. None where outputs are shorter: `0` or `true` found
 * somewhere says nothing.
 */
export function outputsOf(expected: readonly ExpectedText[], instruction: string): TellingLines {
  const telling = new Set<string>();
  for (const { text, given } of expected) {
    const known = `${given}\n${instruction}`;
    for (const line of new Set(text.split("\n").map((one) => one.trim())))
      if (!telling.has(line) && line.length >= shortestOutput && /\S\s+\S/.test(line) && !known.includes(line)) telling.add(line);
  }
  const lines = [...telling].slice(0, mostLines);
  return { what: "outputs", lines: lines.join("").length >= shortest ? lines : [] };
}

/**
 * The leaks at a place where these lines were found. Some lines stand anywhere by chance, so two of three must be there.
 */
export function leaksAt(place: string, found: ReadonlySet<string>, sought: readonly TellingLines[]): Leak[] {
  return sought.flatMap(({ what, lines }) => {
    const there = lines.filter((line) => found.has(line)).length;
    return there > 0 && there >= Math.ceil((2 * lines.length) / 3) ? [{ what, place, found: there, of: lines.length }] : [];
  });
}

/** The lines that a text has. */
export function linesIn(text: string, sought: readonly TellingLines[]): Set<string> {
  return new Set(sought.flatMap(({ lines }) => lines.filter((line) => text.includes(line))));
}

function trimmedLines({ content }: TreeFile): string[] {
  // What holds a zero byte is no text.
  if (content.includes(0)) return [];
  return content
    .toString("utf8")
    .split("\n")
    .map((line) => line.trim());
}
