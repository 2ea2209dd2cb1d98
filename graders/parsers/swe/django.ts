/** Reads the log of Django's own runner as the SWE sets do: `name ... ok`, also if the test printed something before `ok`. */
import { pythonSteering } from "../steering/steering-files.ts";
import { linesOf, type Statuses, sweParser } from "./status-log.ts";

export const django = sweParser({
  name: "parse_log_django",
  title: "SWE sets: Django's runtests.py --verbosity 2",
  steeredBy: pythonSteering,
  read: readDjango,
});

/** A line with this name means that this test passed, whatever else the line says. */
const printedName = "--version is equivalent to version";
/** One old migration test prints this before its name. */
const before = "Applying sites.0002_alter_domain_unique...test_no_migrations";
/** Ends of a line, tried in this order. The last one has two spaces. */
const passes = [" ... ok", " ... OK", " ...  OK"];
const ends = [
  [" ... FAIL", "FAILED"],
  [" ... ERROR", "ERROR"],
] as const;
/** Headings of the tracebacks at the end. */
const heads = [
  ["FAIL:", "FAILED"],
  ["ERROR:", "ERROR"],
] as const;

export function readDjango(log: string): Statuses {
  const found: Statuses = new Map();
  let last: string | null = null;
  for (const line of linesOf(log).map((raw) => raw.trim())) {
    if (line.includes(printedName)) found.set(printedName, "PASSED");
    if (line.includes(" ... ")) last = beforeFirst(line, " ... ");
    readLine(line, found);
    // The test printed something between its name and this word.
    if (line.startsWith("ok") && last !== null) found.set(last, "PASSED");
  }
  for (const name of interrupted(log)) found.set(name, "PASSED");
  return found;
}

function readLine(line: string, found: Statuses): void {
  const pass = passes.find((end) => line.endsWith(end));
  if (pass !== undefined) {
    const text = line.startsWith(before) ? line.slice(line.indexOf("...") + 3).trim() : line;
    found.set(text.slice(0, text.lastIndexOf(pass)), "PASSED");
  }
  if (line.includes(" ... skipped")) found.set(beforeFirst(line, " ... skipped"), "SKIPPED");
  for (const [end, status] of ends) if (line.endsWith(end)) found.set(beforeFirst(line, end), status);
  for (const [head, status] of heads) {
    const name = line.startsWith(head) ? line.split(/\s+/)[1] : undefined;
    if (name !== undefined) found.set(name, status);
  }
}

function beforeFirst(line: string, what: string): string {
  return line.slice(0, line.indexOf(what));
}

/** The runner itself prints these into the line of a test. A line `ok` follows. */
const notes = [
  /^Testing against Django installed in .* silenced\)\.$/s,
  /^Internal Server Error: \/.*\/$/,
  /^System check identified no issues \(0 silenced\)$/,
];

/** In lines. Django's note of where it is installed has several. */
const longestNote = 20;

function interrupted(log: string): string[] {
  const lines = log.split("\n");
  return lines.flatMap((line, at) => {
    const dots = line.indexOf(" ... ");
    if (dots === -1) return [];
    const note = line.slice(dots + 5);
    const after = lines.slice(at + 1, at + 1 + longestNote);
    const end = note.startsWith("Testing against Django") ? after.indexOf("ok") : after[0] === "ok" ? 0 : -1;
    const whole = [note, ...after.slice(0, Math.max(end, 0))].join("\n");
    return end !== -1 && notes.some((form) => form.test(whole)) ? [line.slice(0, dots)] : [];
  });
}
