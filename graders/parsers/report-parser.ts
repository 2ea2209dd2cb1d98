/** Reads what a test command reported. A parser sees bounded text and never throws for what is in it. */

/** XFAIL and a failed TODO count as passed, as their frameworks say; a skipped test has shown nothing. */
export type TestOutcome = "passed" | "failed" | "skipped";

export type Report = {
  /** Full test name -> outcome. The same name with two outcomes is failed. */
  outcomes: Map<string, TestOutcome>;
  /** The report is complete by its own words: a matching plan, a closing tag, a last row. */
  complete: boolean;
  /** A sealed report's runner has spoken: the command itself could be started. null: this parser cannot know. */
  begun: boolean | null;
  /** What is wrong with the report, in words; null when nothing is. */
  problem: string | null;
};

export interface ReportParser {
  readonly name: string;
  readonly title: string;
  /** Program of graders/runners/ that stands for `{runner}` in the command; null: the command reports by itself. */
  readonly runner: string | null;
  /** Whose programs `runner` is one of. Absent: those of Node.js. */
  readonly language?: "node" | "python";
  /** How the framework is read where the command names `{runner}`, for a parser that else reads its log. Absent: it has no runner. */
  readonly sealedForm?: ReportParser;
  /** Where the work runs apart, all hidden files lie in a folder of the runner's own; else all lie on the disk. Absent: see `code`. */
  readonly hidesWhereApart?: boolean;
  /** Where the report is: what the command prints on stdout, there and on stderr, or the file that stands for `{report}`. */
  readonly source: "stdout" | "output" | "file";
  /** Its runner can have the work loaded by a process of its own. Absent: it cannot. */
  readonly apart?: boolean;
  /** Hidden tests with such a path are code that its runner takes over stdin. Absent: all lie on the disk. */
  readonly code?: RegExp;
  /** Rows carry a seal that the work does not know: printing test results does not make any. */
  readonly sealed: boolean;
  /**
   * Globs of the files by which a work could steer the framework: its configuration and plug-ins. They stay as they were
   * delivered where a task does not say what is protected. Absent: none.
   */
  readonly steeredBy?: readonly string[];
  /** Modules that the framework loads by name from the workdir: a work adds none of them there, unless a task says otherwise. */
  readonly modules?: readonly string[];
  /** A name as this parser's reports have it, for one that a task requires. Absent: names are taken as they are. */
  nameOf?(name: string): string;
  /** Whether a required name of a list counts, for sets that have rules of their own. Absent: where it passed. */
  counts?(outcomes: ReadonlyMap<string, TestOutcome>, name: string, list: "fail_to_pass" | "pass_to_pass"): boolean;
  /** `key` is the seal's secret. */
  parse(text: string, key: string): Report;
}

/** Adds an outcome; a name that has another one already is failed, whichever came first. */
export function addOutcome(outcomes: Map<string, TestOutcome>, name: string, outcome: TestOutcome): void {
  const earlier = outcomes.get(name);
  outcomes.set(name, earlier === undefined || earlier === outcome ? outcome : "failed");
}

/** Parents and name of a nested test as one name. */
export function fullName(path: string[]): string {
  return path.join(" > ");
}
