/**
 * TAP on stdout, in the two forms that JavaScript writes: nested subtests (node:test, tap) where each point is a test,
 * and tape's flat form where `# name` opens a test and the points are its assertions.
 *
 * The work can print here too. Points out of order, a second plan or a plan that was not kept betray most of that and
 * make the report incomplete; a work that prints a whole report of its own and ends the process is not noticed, and under
 * `node --test` one that sends its runner messages. The sealed parsers are for tests that must not be fooled by that.
 */
import { fullName, type Report, type ReportParser, type TestOutcome } from "./report-parser.ts";
import { TestList } from "./test-list.ts";

export const tap: ReportParser = {
  name: "tap",
  title: "TAP on stdout (node:test, tape and others)",
  runner: null,
  source: "stdout",
  sealed: false,
  parse: (text) => new TapReader().read(text),
};

/** What tape and node:test print after the plan; a test of that name in tape's form would be ambiguous anyway. */
const summary = /^(?:tests|suites|pass|fail|cancelled|skipped|skip|todo|duration_ms)\s+[\d.]+$|^ok$/;

/** Deeper than any real suite; bounds what an indented line can make us keep. */
const deepest = 50;

/*
 * Every `.` below takes line ends of Unicode too. One that stopped before them would try all ways to part the rest of a
 * long line, which took hours of this process for one that the work had printed.
 */

type Level = { count: number; plan: number | null };
type FlatTest = { name: string; outcome: TestOutcome };

class TapReader {
  readonly #list = new TestList();
  readonly #names: string[] = [];
  readonly #levels: Level[] = [{ count: 0, plan: null }];
  #nested = false;
  /** tape's open test; null before the first one and in the nested form. */
  #group: { name: string; points: FlatTest[] } | null = null;
  /** The flat form, read as tape's tests. */
  #groups: FlatTest[] = [];
  /** The same points, each read as a test of its own. */
  #loose: FlatTest[] = [];

  read(text: string): Report {
    let diagnostic: string | null = null;
    for (const raw of text.split("\n")) {
      const line = raw.replace(/\r$/, "");
      if (diagnostic !== null) {
        if (line === `${diagnostic}...`) diagnostic = null;
        continue;
      }
      const opens = /^(\s+)---$/.exec(line);
      if (opens) diagnostic = opens[1] as string;
      else this.#line(line);
    }
    this.#closeGroup();
    return this.#end();
  }

  #line(line: string): void {
    const indent = /^ */.exec(line)?.[0].length ?? 0;
    const depth = indent / 4;
    if (!Number.isInteger(depth) || depth > deepest) return;
    const rest = line.slice(indent);
    const point = /^(not )?ok\b(?: +(\d+))?(?: +-)?(?: +(.*))?$/s.exec(rest);
    const plan = /^1\.\.(\d+)(?: *#.*)?$/s.exec(rest);
    if (point) this.#point(depth, point[1] === undefined, point[2], point[3] ?? "");
    else if (plan) this.#plan(depth, Number(plan[1]));
    else if (rest.startsWith("# ")) this.#comment(depth, rest.slice(2));
    else if (/^Bail out!/.test(rest)) this.#list.complain(`the test run gave up: ${rest.slice(0, 200)}`);
  }

  #comment(depth: number, text: string): void {
    const subtest = /^Subtest: (.*)$/s.exec(text);
    if (subtest) {
      this.#nest();
      this.#names[depth] = unescapeTap(subtest[1] as string);
      this.#names.length = depth + 1;
      this.#levels.length = Math.min(this.#levels.length, depth + 1);
    } else if (!this.#nested && depth === 0 && !(this.#level(0).plan !== null && summary.test(text))) {
      this.#closeGroup();
      const skipped = /^SKIP\b:? *(.*)$/s.exec(text);
      if (skipped) this.#groups.push({ name: skipped[1] as string, outcome: "skipped" });
      else if (!summary.test(text)) this.#group = { name: text.replace(/^TODO\b:? */, ""), points: [] };
    }
  }

  /** node:test writes what a program prints as comments: with the first subtest, those before it open no tests. */
  #nest(): void {
    this.#closeGroup();
    for (const { name, outcome } of this.#loose) this.#list.add(name, outcome);
    [this.#groups, this.#loose] = [[], []];
    this.#nested = true;
  }

  #point(depth: number, ok: boolean, number: string | undefined, text: string): void {
    const level = this.#level(depth);
    level.count++;
    if (number !== undefined && Number(number) !== level.count)
      this.#list.complain(`test point ${number} came where ${level.count} was due`);
    this.#closeLevel(depth + 1);
    const { name, directive } = readDescription(text);
    const outcome: TestOutcome = directive === "skip" ? "skipped" : ok || directive === "todo" ? "passed" : "failed";
    if (this.#group === null) this.#list.add(fullName([...this.#names.slice(0, depth), name]), outcome);
    else this.#group.points.push({ name, outcome });
  }

  #plan(depth: number, count: number): void {
    const level = this.#level(depth);
    if (level.plan !== null) this.#list.complain("there are two plans");
    level.plan = count;
    // tape's plan is its last word on the tests.
    if (depth === 0 && level.count > 0) this.#closeGroup();
  }

  #level(depth: number): Level {
    while (this.#levels.length <= depth) this.#levels.push({ count: 0, plan: null });
    return this.#levels[depth] as Level;
  }

  /** The parent's test point ends the level of its children; their plan must match their count. */
  #closeLevel(depth: number): void {
    const level = this.#levels[depth];
    if (level && level.plan !== level.count)
      this.#list.complain(`${level.plan ?? "no number of"} subtests were planned and ${level.count} reported`);
    this.#levels.length = Math.min(this.#levels.length, depth);
  }

  /** A comment without a test point is no test: anything that the work prints may be one. */
  #closeGroup(): void {
    const { name = "", points = [] } = this.#group ?? {};
    this.#group = null;
    if (points.length === 0) return;
    const found = new Set(points.map(({ outcome }) => outcome));
    this.#groups.push({ name, outcome: (["failed", "passed"] as const).find((one) => found.has(one)) ?? "skipped" });
    for (const point of points) this.#loose.push(point);
  }

  #end(): Report {
    for (const { name, outcome } of this.#groups) this.#list.add(name, outcome);
    const { plan, count } = this.#level(0);
    if (plan === null) this.#list.complain("there is no plan: the test process ended before its tests did");
    else if (plan !== count) this.#list.complain(`${plan} tests were planned and ${count} reported`);
    return this.#list.report();
  }
}

/** tap and vitest write behind a name how long it took, and vitest opens the block of its children there: no part of the name. */
const took = /(?<!\\) # time=[\d.]+m?s(?: \{)?$/;

function readDescription(text: string): { name: string; directive: "skip" | "todo" | null } {
  const found = /^(.*?)(?:^|(?<!\\)\s)# *(skip|todo)\b.*$/is.exec(text);
  const name = unescapeTap((found ? (found[1] as string) : text).replace(/^- /, "").replace(took, "").trim());
  return { name, directive: found ? ((found[2] as string).toLowerCase() as "skip" | "todo") : null };
}

function unescapeTap(text: string): string {
  return text.replace(/\\([\\#])/g, "$1");
}
