/** `.dockerignore`: which paths of a build context stay out, by Docker's own rules. */
import { AlidadeError } from "../../../../base/errors.ts";

/** `within`: inside the folders that the `folders` before it took. */
type Token = { type: "char"; char: string } | { type: "set"; set: RegExp } | { type: "any" | "star" | "all" | "folders" | "within" };

type IgnoreLine = { tokens: Token[]; keeps: boolean };

/** The longest lists of large projects have a hundred lines. Each is held against each path. */
const mostRules = 500;
const longestRule = 500;

export class IgnoreFile {
  readonly #rules: IgnoreLine[];
  /** A folder that is left out may hold files that are not. */
  readonly hasExceptions: boolean;

  /** `text`: the file. Throws `task_invalid` for a line that is no pattern. */
  constructor(text: string) {
    const lines = text
      .replace(/^\ufeff/, "")
      .split(/\r?\n/)
      .map((line) => (line.startsWith("#") ? "" : line.trim()))
      .filter((line) => line !== "");
    if (lines.length > mostRules) throw refused(`has more than ${mostRules} lines`);
    this.#rules = lines.map(toRule).filter((rule) => rule.tokens.length > 0);
    this.hasExceptions = this.#rules.some(({ keeps }) => keeps);
  }

  /** The last line that names the path, or a folder above it, decides. `path`: relative, with `/` between its parts. */
  leavesOut(path: string): boolean {
    const paths = path.split("/").map((_, index, parts) => parts.slice(0, index + 1).join("/"));
    const last = this.#rules.findLast(({ tokens }) => paths.some((one) => matches(tokens, one)));
    return last !== undefined && !last.keeps;
  }
}

function toRule(line: string): IgnoreLine {
  if (line.length > longestRule) throw refused(`has a line of more than ${longestRule} characters`);
  const keeps = line.startsWith("!");
  const parts = (keeps ? line.slice(1).trim() : line).split("/").filter((part) => part !== "" && part !== ".");
  const inside: string[] = [];
  for (const part of parts) {
    if (part === "..") inside.pop();
    else inside.push(part);
  }
  return { tokens: toTokens(inside.join("/")), keeps };
}

function toTokens(pattern: string): Token[] {
  const tokens: Token[] = [];
  for (const [found] of pattern.matchAll(/\*\*\/|\*\*|\*|\?|\[(?:\\.|[^\]\\])+\]|\\.|./gsu)) {
    if (found === "**/") tokens.push({ type: "folders" }, { type: "within" });
    else if (found === "**") tokens.push({ type: "all" });
    else if (found === "*") tokens.push({ type: "star" });
    else if (found === "?") tokens.push({ type: "any" });
    else if (found.length > 1 && found.startsWith("[")) tokens.push({ type: "set", set: toSet(found) });
    else tokens.push({ type: "char", char: found.length > 1 && found.startsWith("\\") ? found.slice(1) : found });
  }
  return tokens;
}

function toSet(text: string): RegExp {
  try {
    return new RegExp(`^${text}$`, "u");
  } catch {
    throw refused(`has ${text}, which is no set of characters`);
  }
}

/** All places of the pattern are followed at once, so that no pattern takes more than its length for each character. */
function matches(tokens: Token[], path: string): boolean {
  let places = new Set<number>();
  enter(tokens, 0, places);
  for (const char of path) {
    const next = new Set<number>();
    for (const place of places) for (const to of after(tokens, place, char)) enter(tokens, to, next);
    if (next.size === 0) return false;
    places = next;
  }
  return places.has(tokens.length);
}

/** A place, and those behind it that need no character. */
function enter(tokens: Token[], place: number, places: Set<number>): void {
  places.add(place);
  const type = tokens[place]?.type;
  if (type === "star" || type === "all") enter(tokens, place + 1, places);
  if (type === "folders") enter(tokens, place + 2, places);
}

function after(tokens: Token[], place: number, char: string): number[] {
  const token = tokens[place];
  const isSlash = char === "/";
  switch (token?.type) {
    case "char":
      return token.char === char ? [place + 1] : [];
    case "set":
      return !isSlash && token.set.test(char) ? [place + 1] : [];
    case "any":
      return isSlash ? [] : [place + 1];
    case "star":
      return isSlash ? [] : [place];
    case "all":
      return [place];
    case "folders":
      return isSlash ? [place + 1, place + 2] : [place + 1];
    case "within":
      return isSlash ? [place, place + 1] : [place];
    default:
      return [];
  }
}

function refused(why: string): AlidadeError {
  return new AlidadeError("task_invalid", `The .dockerignore of environment.build.context ${why}: change it.`, {
    param: "environment.build.context",
  });
}
