/** What the verbs that make tasks share: how tests are run, where tasks go, and what is said at the end. */
import { join } from "node:path";
import type { Command } from "commander";
import { AlidadeError } from "../../../base/errors.ts";
import type { EngineAddress } from "../../../base/schema/container-engine.ts";
import { imageParts, wantedImageName } from "../../../base/schema/environment/image-name.ts";
import { TestsSpec } from "../../../graders/index.ts";
import { pickBackend } from "../../../sandboxes/index.ts";
import type { CandidateFix, HowTested, TriedFix } from "../../../tasks/made/index.ts";
import { type MakeOptions, makeTasks, usualTests } from "../../../tasks/made/index.ts";
import { table } from "../../../view/text/index.ts";
import { print, say, toNumber } from "../command-line.ts";
import { dockerEngineOption, sandboxWords } from "../flags/plug-in-flags.ts";
import { terminal } from "../terminal.ts";

export type MakeFlags = {
  test: string;
  parser: string;
  image?: string;
  tests?: string[];
  out?: string;
  testSeconds: number;
  memoryMb: number;
  sandbox: string;
  dockerEngine?: EngineAddress[];
  json?: boolean;
};

export function addMakeFlags(command: Command): Command {
  return command
    .requiredOption("--test <command>", "line for sh that runs the tests in the project's folder; {runner} and {report} as in a task")
    .requiredOption("--parser <name>", "how their report is read: docs/tasks.md lists the parsers")
    .option("--image <name>", "image with all that the tests need; left out: Alidade's own base image (Python and git)")
    .option("--tests <glob>", "which files are tests; several times for several; left out: the usual names", (glob, all: string[] = []) => [
      ...all,
      glob,
    ])
    .option("-o, --out <folder>", "folder for the tasks; left out: tasks-<name>")
    .option("--test-seconds <number>", "seconds that the tests may run", toNumber, 300)
    .option("--memory-mb <number>", "memory that they may take", toNumber, 2048)
    .option("--sandbox <name>", `${sandboxWords}; it must isolate`, "auto")
    .addOption(dockerEngineOption())
    .option("--json", "print one JSON object");
}

type Owner = MakeOptions["owner"];

/** Checks the flags and finds a backend before anything is fetched. It must isolate, because strangers' tests run in it. */
export async function makeOf(flags: MakeFlags, owner: Owner, signal: AbortSignal) {
  const how: HowTested = {
    test: flags.test,
    parser: parserOf(flags.parser),
    image: imageOf(flags.image),
    tests: flags.tests ?? usualTests,
    test_seconds: wholeNumber(flags.testSeconds, "test-seconds"),
    memory_mb: wholeNumber(flags.memoryMb, "memory-mb"),
  };
  const { backend, reason } = await pickBackend(flags.sandbox, signal, { docker_engines: flags.dockerEngine, needs: { isolated: true } });
  say(`  ${reason}`);
  const progress = (line: string): void => say(`  ${line}`);
  const run = (candidates: AsyncIterable<CandidateFix>, place: Pick<MakeOptions, "out" | "source" | "limit">) =>
    makeTasks(candidates, { ...place, how, backend, owner, signal, progress });
  return { how, run };
}

function imageOf(name: string | undefined): HowTested["image"] {
  if (name === undefined || imageParts(name) !== null) return name ?? null;
  throw new AlidadeError("config_invalid", `--image is ${JSON.stringify(name)}: give ${wantedImageName}`, { param: "image" });
}

function parserOf(name: string): HowTested["parser"] {
  const result = TestsSpec.shape.parser.safeParse(name);
  if (result.success) return result.data;
  throw new AlidadeError("config_invalid", `--parser ${result.error.issues[0]?.message}`, { param: "parser" });
}

export function wholeNumber(value: number, flag: string): number {
  if (Number.isInteger(value) && value >= 1) return value;
  throw new AlidadeError("config_invalid", `--${flag} is ${value}: give a whole number of 1 or more`, { param: flag });
}

/** `passedOver`: how many changes were no candidates, by the reason. */
export function tellMade(out: string, tried: TriedFix[], passedOver: Record<string, number>, json: boolean): void {
  const kept = tried.filter((one) => one.state === "kept");
  if (json) print(JSON.stringify({ out, tasks: kept.map(({ task_id }) => task_id), tried, passed_over: passedOver }));
  else {
    print(
      table(
        ["task", "fail to pass", "pass to pass", "work runs"],
        kept.map((one) => [one.task_id, one.fail_to_pass, one.pass_to_pass, one.work_runs ?? "together"]),
      ),
    );
    const reasons = Map.groupBy(
      tried.filter((one) => one.state === "dropped"),
      ({ reason }) => reason,
    );
    for (const [reason, all] of reasons) say(`  ${all.length} dropped: ${reason}`);
    for (const [reason, count] of Object.entries(passedOver)) if (count > 0) say(`  ${count} passed over: ${reason}`);
    say(`\n${out}: \`alidade check ${out}\` proves the tasks; ${join(out, "tried.json")} says why others are none`);
  }
  if (kept.length === 0) terminal().exitCode = 1;
}
