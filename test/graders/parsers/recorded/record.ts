/**
 * `node record.ts [framework …]`: runs the scenarios in each framework and writes `<framework>.jsonl` beside this file,
 * one line a log. The frameworks must be there: see `projects.ts` for where they are looked for.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type Project, projects } from "./projects.ts";
import type { RecordedLog } from "./recorded-log.ts";
import { type Kind, type Scenario, type ScenarioTest, scenarios } from "./scenarios.ts";

const outcomes: Record<Kind, "passed" | "failed" | "skipped"> = {
  passes: "passed",
  noisy: "passed",
  fails: "failed",
  lies: "failed",
  exits: "failed",
  never: "failed",
  skipped: "skipped",
};

function truthOf(project: Project, { files }: Scenario, parser: string): RecordedLog["truth"] {
  const truth = new Map<string, "passed" | "failed" | "skipped">();
  const allBroken = project.oneForAll && files.some(({ broken }) => broken);
  for (const file of files)
    for (const test of file.tests) {
      const outcome = file.broken || allBroken ? "failed" : outcomeOf(project, test);
      const name = project.nameOf(file, test, parser);
      truth.set(name, truth.has(name) && truth.get(name) !== outcome ? "failed" : outcome);
    }
  return Object.fromEntries(truth);
}

function outcomeOf({ exits }: Project, { kind }: ScenarioTest): RecordedLog["truth"][string] {
  if (kind === "never" && exits !== undefined) return "passed";
  return kind === "exits" && exits !== undefined ? exits : outcomes[kind];
}

function record(project: Project, scenario: Scenario, folder: string): RecordedLog[] {
  for (const [path, content] of Object.entries(project.files(scenario))) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), content);
  }
  const version = project.version.map((line) => execFileSync("sh", ["-c", line], { encoding: "utf8" }).trim()).join(", ");
  return project.commands.map((command) => {
    const parser = project.parserOf(command);
    const env = { ...process.env, COLUMNS: "80", PYTHONDONTWRITEBYTECODE: "1" };
    for (const name of ["NODE_TEST_CONTEXT", "FORCE_COLOR", "NO_COLOR", "CI"]) delete (env as Record<string, unknown>)[name];
    const { stdout, stderr } = spawnSync("sh", ["-c", command], { cwd: folder, env, encoding: "utf8", timeout: 300_000 });
    return {
      framework: project.framework,
      version,
      parser,
      scenario: scenario.name,
      command: command.replaceAll(/\S*\/(?=python|jest|mocha|vitest)/g, ""),
      log: (parser.endsWith("-json") ? stdout : `${stdout}\n${stderr}`).replaceAll(folder, "/project"),
      whole: project.exits !== undefined || !scenario.files.some((file) => file.tests.some(({ kind }) => kind === "exits")),
      truth: truthOf(project, scenario, parser),
    };
  });
}

const wanted = process.argv.slice(2);
for (const project of projects.filter(({ framework }) => wanted.length === 0 || wanted.includes(framework))) {
  const rows = scenarios.flatMap((scenario) => {
    const folder = mkdtempSync(join(tmpdir(), "alidade-record-"));
    try {
      return record(project, scenario, folder);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
  writeFileSync(join(import.meta.dirname, `${project.framework}.jsonl`), rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
  console.log(project.framework, rows.length);
}
