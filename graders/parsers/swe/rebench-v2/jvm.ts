/** Reads logs of Maven, sbt, Gradle and Leiningen as SWE-rebench-V2 does. */
import { linesOf, type Status, type Statuses, splitLines } from "../status-log.ts";
import { fragments } from "./xml.ts";

const counts = /Tests run:\s*(\d{1,9}),\s*Failures:\s*(\d{1,9}),\s*Errors:\s*(\d{1,9}),\s*Skipped:\s*(\d{1,9})/;

const keep = (found: Statuses, name: string, status: Status): unknown => (found.has(name) ? null : found.set(name, status));

/** Each test is run by a command of its own, which the log shows. A result belongs to the last name before it. */
export function mavenCommands(log: string): Statuses {
  const found: Statuses = new Map();
  let name = "---NO TEST NAME FOUND YET---";
  for (const line of linesOf(log).map((raw) => raw.trim())) {
    const option = line.lastIndexOf("-Dtest=");
    name = lastTest(line, option) ?? name;
    const result = /BUILD (SUCCESS|FAILURE)$/.exec(line)?.[1];
    if (result !== undefined) found.set(name, result === "SUCCESS" ? "PASSED" : "FAILED");
  }
  return found;
}

/** Returns the name after the last `-Dtest=` that has one. */
function lastTest(line: string, from: number): string | null {
  for (let at = from; at !== -1; at = at === 0 ? -1 : line.lastIndexOf("-Dtest=", at - 1)) {
    const test = /^\S+/.exec(line.slice(at + 7, at + 4_096))?.[0];
    if (test !== undefined) return test;
  }
  return null;
}

const running = /^(?:\[INFO\]\s+)?Running\s+([A-Za-z0-9_$.]+)$/;
const failed = /^\[ERROR\]\s+([A-Za-z0-9_$.]+)/;

/** Reads classes by their counts, and failed tests by name. Then reads JUnit files and commands that the log shows. */
export function maven(log: string): Statuses {
  const found: Statuses = new Map();
  const seen = new Set<string>();
  let current: string | null = null;
  for (const line of splitLines(log).map((raw) => raw.trim())) {
    const started = running.exec(line)?.[1];
    const failure = methodOf(line);
    const [, , failures, errors, skipped] = counts.exec(line) ?? [];
    if (started !== undefined) {
      current = started;
      seen.add(started);
    } else if (failure !== null) {
      const isError = line.includes("Exception") && !line.includes("AssertionError");
      found.set(`${failure.suite}.${failure.method}`, isError ? "ERROR" : "FAILED");
      keep(found, failure.suite, "FAILED");
    } else if (failures !== undefined) {
      const suite = line.includes(" in ") ? (line.split(" in ").at(-1) as string).trim().replace(/[.:;]{1,64}$/, "") : current;
      const broken = Number(failures) > 0 || Number(errors) > 0;
      if (suite) keep(found, suite, broken ? "FAILED" : Number(skipped) > 0 ? "SKIPPED" : "PASSED");
      current = null;
    }
  }
  for (const [name, status] of fragments(log)) keep(found, name, status as Status);
  for (const [name, status] of mavenCommands(log)) keep(found, name, status as Status);
  if (found.size === 0) for (const suite of seen) found.set(suite, "PASSED");
  return found;
}

/** Reads `[ERROR] class.method`. The class has dots; the method is the shortest text after its last dot that ends a word. */
function methodOf(line: string): { suite: string; method: string } | null {
  const [all = "", whole] = failed.exec(line) ?? [];
  if (whole === undefined) return null;
  const after = line.slice(all.length);
  for (let dot = whole.lastIndexOf("."); dot > 0; dot = whole.lastIndexOf(".", dot - 1)) {
    const method = methodAt(whole.slice(dot + 1), after);
    if (method !== null) return { suite: whole.slice(0, dot), method };
  }
  return null;
}

const isWord = (one: string | undefined): boolean => one !== undefined && /[\p{L}\p{N}_]/u.test(one);

function methodAt(rest: string, after: string): string | null {
  for (let length = 1; length <= rest.length; length++) {
    const next = rest[length] ?? after[0];
    if (isWord(rest[length - 1]) !== isWord(next)) return rest.slice(0, length);
  }
  const lined = /^:\d+/.exec(after)?.[0];
  return rest !== "" && lined !== undefined && !isWord(after[lined.length]) ? rest : null;
}

/** Reads the modules of the reactor's summary. All tests together get one name. */
export function mavenModules(log: string): Statuses {
  const found: Statuses = new Map();
  const words = new Map<string, Status>([
    ["SUCCESS", "PASSED"],
    ["FAILURE", "FAILED"],
    ["SKIPPED", "SKIPPED"],
  ]);
  for (const line of splitLines(log).map((raw) => raw.trim())) {
    const [, name, word] = /^\[INFO\]\s+(\S+(?:\s+\S+)*?)\s+\.\.+\s+(SUCCESS|FAILURE|SKIPPED)(?:[\s[]|$)/.exec(line) ?? [];
    const [run, failures, errors, skipped] = (counts.exec(line) ?? []).slice(1).map(Number);
    if (name !== undefined) found.set(name, words.get(word as string) as Status);
    else if (run !== undefined)
      keep(found, "__suite__", Number(failures) > 0 ? "FAILED" : Number(errors) > 0 ? "ERROR" : skipped === run ? "SKIPPED" : "PASSED");
  }
  return found;
}

const spaced = /^Tests run:\s+(\d{1,9}),\s+Failures:\s+(\d{1,9}),\s+Errors:\s+(\d{1,9}),\s+Skipped:\s+(\d{1,9})/;

/** Reads old Surefire. A class counts as a test, by the counts in the line after its name. */
export function classes(log: string): Statuses {
  const found: Statuses = new Map();
  let current: string | null = null;
  for (const line of splitLines(log).map((raw) => raw.trim())) {
    const started = /^Running\s+(.+)$/s.exec(line)?.[1];
    const [, , failures, errors, skipped] = spaced.exec(line) ?? [];
    if (started !== undefined) current = started;
    else if (failures !== undefined && current !== null) {
      const broken = Number(failures) > 0 || Number(errors) > 0;
      found.set(current, broken ? "FAILED" : Number(skipped) > 0 ? "SKIPPED" : "PASSED");
      current = null;
    }
  }
  return found;
}

/** Reads namespaces of Clojure. A namespace passed unless a line below it says that it failed. */
export function lein(log: string): Statuses {
  const found: Statuses = new Map();
  let current: string | null = null;
  for (const line of splitLines(log).map((raw) => raw.trim())) {
    const payload = /^lein test (.+)$/s.exec(line)?.[1]?.trim();
    if (payload !== undefined) {
      const names = payload.startsWith(":only") && /^:only(?:\s|$)/.test(payload) ? [only(payload)] : payload.split(/\s+/);
      if (names[0] === "") current = null;
      for (const name of names.filter((one) => one !== "")) {
        keep(found, name, "PASSED");
        current = name;
      }
    } else if (current !== null && line.startsWith("FAIL in")) found.set(current, "FAILED");
    else if (current !== null && line.startsWith("ERROR in")) found.set(current, "ERROR");
  }
  return found;
}

function only(payload: string): string {
  const target = payload.split(/\s+/).slice(1).join(" ");
  return (target.split("/", 1)[0] as string).trim();
}
