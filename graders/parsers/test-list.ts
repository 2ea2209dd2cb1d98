/** What a parser has read so far: outcomes by name, and the first thing that is wrong with the report. */
import { addOutcome, type Report, type TestOutcome } from "./report-parser.ts";

/** Characters of all names together. A short line counts with the names of its parents, which may be long. */
const mostNames = 64_000_000;

export class TestList {
  readonly outcomes = new Map<string, TestOutcome>();
  #characters = 0;
  #problem: string | null = null;

  add(name: string, outcome: TestOutcome): void {
    this.#characters += name.length;
    if (this.#characters > mostNames) this.complain(`the names of the tests have more than ${mostNames} characters`);
    else addOutcome(this.outcomes, name, outcome);
  }

  /** The first complaint stands; with one the report is not complete. */
  complain(problem: string): void {
    this.#problem ??= problem;
  }

  /** The log's own count must be that of the tests which it lists. `hint`: how to run the framework so that it is. */
  expect(outcome: string, counted: number, listed: number, hint = ""): void {
    if (counted !== listed) this.complain(`the summary counts ${counted} ${outcome} tests, and ${listed} are listed${hint && `: ${hint}`}`);
  }

  /** A log has one summary: none means that it was cut off, several that the work printed one. */
  expectOne(what: string, found: number): void {
    if (found === 0) this.complain(`there is no ${what}: the test process ended before its tests did`);
    else if (found > 1) this.complain(`there are ${found} of what should be one ${what}: only one can be the framework's own`);
  }

  report(): Report {
    return { outcomes: this.outcomes, complete: this.#problem === null, begun: null, problem: this.#problem };
  }
}
