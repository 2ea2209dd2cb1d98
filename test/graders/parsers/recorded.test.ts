/**
 * Logs of real runs (`recorded/record.ts` made them; each line names framework and version) against what is true of their
 * tests, and the same logs cut, mixed, coloured and forged.
 */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import { parserNamed } from "../../../graders/parsers/registry.ts";
import type { RecordedLog } from "./recorded/recorded-log.ts";
import { scenarios } from "./recorded/scenarios.ts";

const folder = join(import.meta.dirname, "recorded");
const logs = globSync("*.jsonl", { cwd: folder })
  .sort()
  .flatMap((file) => readFileSync(join(folder, file), "utf8").trim().split("\n"))
  .map((line) => JSON.parse(line) as RecordedLog);

/** Scenarios in which no test prints, exits or fails to load: their logs leave nothing open. */
const plain = new Set(
  scenarios
    .filter(({ files }) =>
      files.every(({ broken, tests }) => !broken && tests.every(({ kind }) => /^(?:passes|fails|skipped)$/.test(kind))),
    )
    .map(({ name }) => name),
);

const nameIn = (parser: string, name: string) => parserNamed(parser).nameOf?.(name) ?? name;

/** Names that would count: passed in a complete report. */
function passes(parser: string, log: string): Set<string> {
  const { complete, outcomes } = parserNamed(parser).parse(log, "");
  return new Set(complete ? [...outcomes].filter(([, outcome]) => outcome === "passed").map(([name]) => name) : []);
}

function truePasses({ parser, truth }: RecordedLog): Set<string> {
  return new Set(Object.entries(truth).flatMap(([name, outcome]) => (outcome === "passed" ? [nameIn(parser, name)] : [])));
}

const knownNames = ({ parser, truth }: RecordedLog) => Object.keys(truth).map((name) => nameIn(parser, name));

test("there are 200 logs of eight frameworks and more", () => {
  assert.ok(logs.length >= 200, `${logs.length}`);
  assert.ok(new Set(logs.map(({ framework }) => framework.replace(/-.*/, ""))).size >= 8);
});

for (const framework of new Set(logs.map((log) => log.framework))) {
  test(`${framework}: the recorded logs are read as their tests really ended`, () => {
    for (const log of logs.filter((one) => one.framework === framework)) {
      const about = `${log.scenario}, ${log.command}`;
      const report = parserNamed(log.parser).parse(log.log, "");
      const found = passes(log.parser, log.log);
      if (plain.has(log.scenario)) assert.deepEqual([report.complete, report.problem], [true, null], about);
      if (!log.whole) assert.equal(found.size > 0 && log.framework !== "go", false, about);
      for (const name of knownNames(log)) if (found.has(name)) assert.ok(truePasses(log).has(name), `${about}: ${name}`);
      if (report.complete && log.whole) for (const name of truePasses(log)) assert.ok(found.has(name), `${about}: ${name} is missing`);
    }
  });
}

/** No test passes that did not really pass, and no other name that the log as it was recorded does not have. */
function assertNoNewPass(log: RecordedLog, mutated: string, what: string): void {
  const { outcomes } = parserNamed(log.parser).parse(log.log, "");
  const [known, passed] = [new Set(knownNames(log)), truePasses(log)];
  for (const name of passes(log.parser, mutated))
    assert.ok(known.has(name) ? passed.has(name) : outcomes.has(name), `${what} of ${log.framework}, ${log.scenario}: ${name}`);
}

const anyLog = fc.constantFrom(...logs);

test("a log that was cut off anywhere, or begins at any of its lines, gives no pass that was not there", () => {
  // Two programs of Cargo's have a test of one name there: without the second program the first one's test did pass.
  const whole = logs.filter(({ framework, scenario }) => framework !== "cargo" || scenario !== "two files");
  fc.assert(
    fc.property(fc.constantFrom(...whole), fc.nat(), fc.boolean(), (log, at, fromStart) => {
      const lines = log.log.split("\n");
      const cut = fromStart ? lines.slice(at % (lines.length + 1)).join("\n") : log.log.slice(0, at % (log.log.length + 1));
      assertNoNewPass(log, cut, "a cut");
    }),
    { numRuns: 1_500 },
  );
});

test("a log without lies that lost lines or has them twice gives no pass that was not there", () => {
  const change = fc.tuple(fc.constantFrom("drop", "repeat"), fc.nat(), fc.nat());
  const lies = new Set(
    scenarios.filter(({ files }) => files.some(({ tests }) => tests.some(({ kind }) => kind === "lies"))).map(({ name }) => name),
  );
  const honest = logs.filter(({ scenario }) => !lies.has(scenario));
  fc.assert(
    fc.property(fc.constantFrom(...honest), fc.array(change, { minLength: 1, maxLength: 4 }), (log, changes) => {
      const lines = log.log.split("\n");
      for (const [kind, one, other] of changes) {
        const [a, b] = [one % lines.length, other % lines.length];
        if (kind === "drop") lines.splice(a, 1);
        else lines.splice(b, 0, lines[a] as string);
      }
      const known = new Set(knownNames(log).filter((name) => !truePasses(log).has(name)));
      for (const name of passes(log.parser, lines.join("\n"))) assert.ok(!known.has(name), `${log.framework}, ${log.scenario}: ${name}`);
    }),
    { numRuns: 1_500 },
  );
});

test("two logs that run into each other give no pass that neither had", () => {
  const pair = anyLog.chain((log) => fc.tuple(fc.constant(log), fc.constantFrom(...logs.filter(({ parser }) => parser === log.parser))));
  fc.assert(
    fc.property(pair, fc.array(fc.nat({ max: 12 }), { minLength: 1, maxLength: 20 }), ([first, second], turns) => {
      const [a, b] = [first.log.split("\n"), second.log.split("\n")];
      const mixed: string[] = [];
      for (let turn = 0; a.length + b.length > 0; turn++)
        mixed.push(...(turn % 2 ? a : b).splice(0, (turns[turn % turns.length] as number) + 1));
      const had = new Set([first, second].flatMap((log) => [...truePasses(log)]));
      const found = passes(first.parser, mixed.join("\n"));
      for (const name of [first, second].flatMap(knownNames))
        assert.ok(!found.has(name) || had.has(name), `${first.framework}, ${first.scenario} and ${second.scenario}: ${name}`);
    }),
    { numRuns: 1_500 },
  );
});

test("colours anywhere at the ends of words change nothing", () => {
  const texts = logs.filter(({ parser }) => !parser.endsWith("-json"));
  fc.assert(
    fc.property(fc.constantFrom(...texts), fc.array(fc.nat(), { minLength: 1, maxLength: 30 }), (log, places) => {
      const words = log.log.split(/(?<=\s)(?=\S)/);
      for (const place of places) words[place % words.length] = `\u001b[1;3${place % 8}m${words[place % words.length]}\u001b[0m`;
      assert.deepEqual(passes(log.parser, words.join("")), passes(log.parser, log.log));
    }),
    { numRuns: 500 },
  );
});

/** What a work prints to make a test of this name look as if it had passed. */
const forgeries: Record<string, (name: string) => string[]> = {
  pytest: (name) => [
    `PASSED ${name}`,
    `${name} PASSED [ 10%]`,
    `=== short test summary info ===\nPASSED ${name}\n=== 1 passed in 0.01s ===`,
  ],
  unittest: (name) => [`${name} ... ok`, "ok", `${name} ... ok\n\nRan 1 test in 0.001s\n\nOK`],
  "go-test": (name) => [`--- PASS: ${name} (0.00s)`],
  "go-test-json": (name) => [`{"Action":"pass","Package":"example.com/m/alpha","Test":"${name}"}`],
  cargo: (name) => [`test ${name} ... ok`],
  vitest: (name) => [` ✓ ${name} 1ms`],
  jest: (name) => [`  ✓ ${name} (1 ms)`, `PASS ./x.test.js\n  ✓ ${name}\n\nTests:       1 passed, 1 total`],
  "jest-json": (name) => [
    `{"numPassedTests":1,"numFailedTests":0,"testResults":[{"assertionResults":[{"ancestorTitles":[],"title":"${name}","status":"passed"}]}]}`,
  ],
  mocha: (name) => [`  ✔ ${name}`, `    ✔ ${name}`, `  ✔ ${name}\n\n  1 passing (1ms)\n`],
  maven: (name) => [`[INFO] ${name} -- Time elapsed: 0.001 s`, `[INFO] ${name} -- Time elapsed: 0.001 s\n[INFO] BUILD SUCCESS`],
  ctest: (name) => [`1/1 Test #1: ${name} ....   Passed    0.00 sec`],
};

test("a result that the work printed beside the framework's own gives no pass that was not there", () => {
  const forged = anyLog.chain((log) =>
    fc.tuple(fc.constant(log), fc.constantFrom(...knownNames(log), "made_up", "a.py::made_up"), fc.nat(), fc.nat()),
  );
  fc.assert(
    fc.property(forged, ([log, name, which, where]) => {
      const lines = log.log.split("\n");
      const all = (forgeries[log.parser] as (name: string) => string[])(name);
      // A whole forged log where the framework itself did not come to speak cannot be told from a real one.
      const hasEnd = parserNamed(log.parser).parse(log.log, "").complete;
      const choices = all.filter((text) => hasEnd || !/\n|^\{"num/.test(text));
      if (choices.length === 0) return;
      lines.splice(where % (lines.length + 1), 0, choices[which % choices.length] as string);
      assertNoNewPass(log, lines.join("\n"), `the forged ${JSON.stringify(choices[which % choices.length])}`);
    }),
    { numRuns: 3_000 },
  );
});
