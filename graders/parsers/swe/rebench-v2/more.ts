/** Reads logs of Ruby, PHP, C++, Dart, Scala and OCaml as SWE-rebench-V2 does, if a table of lines cannot say how. */
import { z } from "zod";
import { readJson } from "../../../../base/schema/read-json.ts";
import { sympyHeading } from "../block-parsers.ts";
import { linesOf, type Status, type Statuses, splitLines, wordsOf } from "../status-log.ts";

const keep = (found: Statuses, name: string, status: Status): unknown => (found.has(name) ? null : found.set(name, status));

const minitestWords = new Map<string, Status>([
  ["PASS", "PASSED"],
  ["PASSED", "PASSED"],
  ["FAIL", "FAILED"],
  ["FAILURE", "FAILED"],
  ["ERROR", "ERROR"],
  ["SKIP", "SKIPPED"],
  ["SKIPPED", "SKIPPED"],
]);
const severity = new Map([
  ["FAILED", 1],
  ["ERROR", 2],
]);

/** Reads Minitest's spec reporter: a line with the suite, then indented lines of tests. The worse status stays. */
export function minitestSuites(log: string): Statuses {
  const found: Statuses = new Map();
  let suite: string | null = null;
  for (const line of splitLines(log).map((raw) => raw.trimEnd())) {
    if (line === "" || line.startsWith("Finished in ")) continue;
    if (/^[A-Z][A-Za-z0-9_]*$/.test(line)) {
      suite = line;
      continue;
    }
    const [, name, word] =
      /^\s*(test[^A-Z]+?)(?<!\s)\s+(PASS|PASSED|FAIL|FAILURE|ERROR|SKIP|SKIPPED)(?:\s*\([0-9.]+s\))?$/.exec(line) ?? [];
    if (name === undefined) continue;
    const full = suite === null ? name.trim() : `${suite}::${name.trim()}`;
    const status = minitestWords.get(word as string) as Status;
    const earlier = found.get(full);
    if (earlier === undefined || (severity.get(status) ?? 0) > (severity.get(earlier) ?? 0)) found.set(full, status);
  }
  return found;
}

const phpName = (name: string): string =>
  name
    .trimEnd()
    .replace(/(?<!\s)\s{2,}\d+(?:\.\d+)?s$/, "")
    .replace(/(?<!\s)\s+\d+(?:\.\d+)?s\s*$/, "")
    .trim();

/** Returns the text before a time that follows two spaces, else the whole text. */
function phpTest(rest: string): string {
  const timed = /^(\S+(?:\s+\S+)*?)\s{2,}\d+\.?\d*s(?![\p{L}\p{N}_])/u.exec(rest)?.[1];
  return phpName(timed ?? rest);
}

/** Reads lines of Pest and PHPUnit with ticks, crosses and dashes. A failed class counts as a test too. */
export function phpTicks(log: string): Statuses {
  const found: Statuses = new Map();
  for (const line of splitLines(log).map((raw) => raw.trimEnd())) {
    const text = line.trim();
    if (text === "" || /^(?:___|---|Tests:|Duration:)/.test(text)) continue;
    const [, suite] = /^FAIL(?:ED)?\s+(\S.+)$/is.exec(text) ?? [];
    const [, mark = "", rest = ""] = /^([✓✔⨯x-])\s+(\S.*)$/isu.exec(text) ?? [];
    if (suite !== undefined) found.set(phpName(suite), "FAILED");
    else if (mark !== "") {
      const name = phpTest(rest);
      if (name === "") continue;
      if (mark === "✓" || mark === "✔") keep(found, name, "PASSED");
      else found.set(name, mark === "-" ? "SKIPPED" : "FAILED");
    } else if (/\(skipped\)|(?<![\p{L}\p{N}_])SKIPPED(?![\p{L}\p{N}_])/iu.test(line)) {
      const name = phpName(line);
      if (name !== "") keep(found, name, "SKIPPED");
    }
  }
  return found;
}

const skipWord = /(?<![\p{L}\p{N}_])SKIPPED(?![\p{L}\p{N}_])/iu;
const failWord = /(?<![\p{L}\p{N}_])(?:FAILED|FAIL|FAILURE)(?![\p{L}\p{N}_])/iu;
const passWord = /(?<![\p{L}\p{N}_])(?:OK|PASSED)(?![\p{L}\p{N}_])/iu;
const wordStatus = (line: string): Status | null =>
  skipWord.test(line) ? "SKIPPED" : failWord.test(line) ? "FAILED" : passWord.test(line) ? "PASSED" : null;

/** Reads `name... OK` and Botan's groups. Any other line with such a word is itself the name of a test. */
export function cppWords(log: string): Statuses {
  const found: Statuses = new Map();
  for (const line of splitLines(log).map((raw) => raw.trim())) {
    const [, group, count, tail] = /^(\S+(?:\s+\S+)*?)\s+ran\s+(\d+)\s+tests\s+in\s+[\d.]+\s+(?:msec|sec)\s+(.+)$/is.exec(line) ?? [];
    const name = group === undefined ? beforeDots(line) : null;
    const status = wordStatus(line);
    if (group !== undefined) {
      const failed = /(?<![\p{L}\p{N}_])failed(?![\p{L}\p{N}_])/iu.test(tail as string);
      found.set(`${group.trim()} ran ${count} tests ${(tail as string).trim()}`, failed ? "FAILED" : "PASSED");
    } else if (name !== null) found.set(name, status ?? "ERROR");
    else if (status !== null && line !== "") found.set(line, status);
  }
  return found;
}

/** Returns the text before three dots and one last word, without a place in a list such as `[3/12]`. null: the line has no such end. */
function beforeDots(line: string): string | null {
  const word = /[\p{L}\p{N}_]+$/u.exec(line.slice(-4_096))?.[0] ?? "";
  const head = word === "" ? "" : line.slice(0, line.length - word.length).trimEnd();
  if (!head.endsWith("...")) return null;
  return head
    .slice(0, -3)
    .replace(/^\[[0-9]+\/[0-9]+\]\s*/, "")
    .trim();
}

const DartEvent = z.looseObject({
  type: z.string().optional(),
  test: z.looseObject({ id: z.unknown().optional(), name: z.unknown().optional() }).optional().catch(undefined),
  testID: z.unknown().optional(),
  hidden: z.unknown().optional(),
  skipped: z.unknown().optional(),
  result: z.unknown().optional(),
});

const dartWords = new Map<unknown, Status>([
  ["success", "PASSED"],
  ["failure", "FAILED"],
  ["error", "ERROR"],
]);

/** Reads the events of `dart test --reporter json`. A line holds one event or a list. */
export function dartEvents(log: string): Statuses {
  const found: Statuses = new Map();
  const names = new Map<unknown, string>();
  for (const event of splitLines(log).flatMap((line) => dartLine(line.trim()))) {
    const { type, test, testID, hidden, skipped, result } = event;
    if (type === "testStart" && test?.id != null && typeof test.name === "string" && test.name !== "" && !test.name.startsWith("loading "))
      names.set(test.id, test.name);
    const name = type === "testDone" && testID != null && !hidden ? names.get(testID) : undefined;
    const status = dartWords.get(result) ?? (skipped ? "SKIPPED" : null);
    if (name !== undefined && status !== null) found.set(name, status);
  }
  return found;
}

function dartLine(line: string): z.infer<typeof DartEvent>[] {
  if (!/^[[{]/.test(line)) return [];
  try {
    const value: unknown = readJson(line);
    const events: unknown[] = Array.isArray(value) ? value : [value];
    return events.flatMap((one) => {
      const event = DartEvent.safeParse(one);
      return event.success ? [event.data] : [];
    });
  } catch {
    return [];
  }
}

/** melos shows a test when it begins and when it ends. A test that is shown once did not end. */
export function dartTwice(log: string): Statuses {
  const times = new Map<string, number>();
  for (const line of splitLines(log).map((raw) => raw.trim())) {
    if (line.toLowerCase().includes("loading")) continue;
    const [, path, name] = /^\[[\p{L}\p{N}_]+\]:\s+\d{2}:\d{2}\s+\+\d+:\s+(\/[^:]+\.dart):\s+(.+)$/su.exec(line) ?? [];
    if (path !== undefined) times.set(`${path}: ${name}`, (times.get(`${path}: ${name}`) ?? 0) + 1);
  }
  return new Map(Array.from(times, ([name, count]) => [name, count > 1 ? "PASSED" : "ERROR"] as const));
}

const scalaWords = new Map<string, Status>([
  ...["ERROR", "ABORTED"].map((word) => [word, "ERROR"] as const),
  ...["SKIPPED", "IGNORED", "CANCELED", "CANCELLED", "PENDING"].map((word) => [word, "SKIPPED"] as const),
]);
const noSuites = [
  "Run completed",
  "Total number",
  "Suites:",
  "Tests:",
  "All tests",
  "compiling",
  "done compiling",
  "loading",
  "welcome to",
  "set current",
];

/** Reads ScalaTest's lines, with the suite above them. */
export function scalaSuites(log: string): Statuses {
  const found: Statuses = new Map();
  let suite: string | null = null;
  for (const line of splitLines(log).map((raw) => raw.trim())) {
    if (!line.startsWith("[info]")) continue;
    if (line.startsWith("[info] -")) {
      const rest = /^\[info\]\s+-\s+(.*)$/s.exec(line)?.[1];
      if (rest === undefined) continue;
      const [, head, token] = /^(\S+(?:\s+\S+)*?|)\s+\*{3}\s+([A-Z]+)\s+\*{3}$/.exec(rest) ?? [];
      const name = (head ?? rest).trim().replace(/(?<!\s)\s*\(\d+\s+[\p{L}\p{N}_]+\)$/u, "");
      const full = suite === null ? name : `${suite}: ${name}`;
      if (token === undefined) keep(found, full, "PASSED");
      else found.set(full, scalaWords.get(token) ?? token);
    } else {
      const title = /^\[info\]\s+([^-].*)$/s.exec(line)?.[1]?.trim();
      if (title && !noSuites.some((word) => title.includes(word))) suite = title;
    }
  }
  return found;
}

const order = new Map([
  ["PASSED", 0],
  ["SKIPPED", 1],
  ["FAILED", 2],
  ["ERROR", 3],
]);
const rank = (status: string): number => order.get(status) ?? -1;

function worse(found: Statuses, name: string, status: Status): void {
  const earlier = found.get(name);
  if (name !== "" && (earlier === undefined || rank(status) >= rank(earlier))) found.set(name, status);
}

/** Reads dune's runs. The words in a run's output are the status of its program. */
export function dune(log: string): Statuses {
  const found: Statuses = new Map();
  const runs = new Map<number, string>();
  const shown = new Set<string>();
  let active: string | null = null;
  for (const line of splitLines(log).map((raw) => raw.trim())) {
    const [, id, command] = /^Running\[(\d+)\]:\s+\((.+)\)$/s.exec(line) ?? [];
    const output = /^Output\[(\d+)\]:/.exec(line)?.[1];
    if (id !== undefined) {
      runs.set(Number(id), programOf(command as string) || `run_${Number(id)}`);
      active = null;
    } else if (output !== undefined) active = runs.get(Number(output)) ?? null;
    else if (active !== null && line !== "") {
      shown.add(active);
      const upper = line.toUpperCase();
      if (["FAIL", "ERROR", "EXCEPTION", "CRASH", "FATAL"].some((token) => upper.includes(token))) worse(found, active, "FAILED");
      else if (upper.includes("SKIP")) worse(found, active, "SKIPPED");
      else if (upper === "OK") worse(found, active, "PASSED");
    }
  }
  for (const name of shown) keep(found, name, "PASSED");
  return found;
}

function programOf(text: string): string {
  const last = (text.split("&&").at(-1) as string).trim();
  const command = last.startsWith("exec ") ? last.slice(5).trim() : last;
  const [binary = ""] = wordsOf(command.startsWith("./") ? command.slice(2) : command);
  return binary.slice(binary.lastIndexOf("/") + 1);
}

const boxWords = new Map<string, Status>([
  ...["OK", "PASS", "PASSED", "SUCCESS"].map((word) => [word, "PASSED"] as const),
  ...["SKIP", "SKIPPED", "TODO", "PENDING", "DISABLED"].map((word) => [word, "SKIPPED"] as const),
  ...["FAIL", "FAILED", "ERROR", "EXCEPTION", "CRASH", "FATAL", "KO", "PANIC"].map((word) => [word, "FAILED"] as const),
]);

/** Reads `[OK] name`. The worse status stays. */
export function boxes(log: string): Statuses {
  const found: Statuses = new Map();
  for (const line of splitLines(log).map((raw) => raw.trim())) {
    const [, token, body] = /^\[([A-Za-z][A-Za-z0-9_-]*)\]\s+(.+)$/s.exec(line) ?? [];
    const status = token === undefined ? undefined : boxWords.get(token.toUpperCase());
    if (status !== undefined) worse(found, (body as string).replace(/\s+/g, " ").trim(), status);
  }
  return found;
}

/** Reads ocamlbuild's coloured lines: a status, then the name up to two spaces. */
export function ocamlBuild(log: string): Statuses {
  const found: Statuses = new Map();
  for (const raw of splitLines(log)) {
    const line = raw
      // biome-ignore lint/suspicious/noControlCharactersInRegex: a colour begins with one
      .replace(/\x1b\[[0-9;]*m/g, " ")
      // biome-ignore lint/suspicious/noControlCharactersInRegex: so do other escapes
      .replace(/\x1b(?:[@-Z\\-_]|\[[0-?]*[ -/]*[@-~])/g, "")
      .trim();
    const [, word, rest = ""] = /^(PASSED|FAILED|SKIPPED|ERROR)\s+(.*)$/s.exec(line) ?? [];
    if (word === undefined) continue;
    const text = rest.trim();
    const wide = text.search(/\s{2}/);
    worse(found, (wide === -1 ? text : text.slice(0, wide)).trim(), word as Status);
  }
  return found;
}

/** Reads `class > test PASSED`, also with a time after it. */
export function gradleLines(log: string): Statuses {
  const found: Statuses = new Map();
  for (const line of linesOf(log).map((raw) => raw.trim())) {
    const [, name, word] = /^([^>]\S*(?:\s+\S+)*?)\s+(PASSED|FAILED)(?:\s+\(\d+(?:\.\d+)?s\))?$/.exec(line) ?? [];
    if (name !== undefined && name.length > 1) found.set(name, word as Status);
  }
  return found;
}

/** Reads SymPy's log, also with a verdict in brackets after the letter. */
export function sympy(log: string): Statuses {
  const lines = linesOf(log);
  const found: Statuses = new Map(lines.flatMap((line) => sympyHeading(line) ?? []).map((name) => [name, "FAILED"]));
  for (const raw of lines.map((line) => line.trim()).filter((line) => line.startsWith("test_"))) {
    const line = /\[(?:FAIL|OK)\]$/.test(raw) ? raw.slice(0, raw.lastIndexOf("[")).trim() : raw;
    const status = line.endsWith(" E") ? "ERROR" : line.endsWith(" F") ? "FAILED" : line.endsWith(" ok") ? "PASSED" : null;
    if (status !== null) found.set(line.split(/\s+/)[0] as string, status);
  }
  return found;
}
