/** `alidade doctor`: what an inference server gives, what it does not, what this machine has, and what to do about each gap. */
import type { Command } from "commander";
import { type EngineFacts, engineRegistry, examine, type Finding } from "../../../engines/index.ts";
import { probeEngine } from "../../../proxy/pool/index.ts";
import { addOmitted, describeOmitted } from "../../../reconstruct/index.ts";
import { examineMachine } from "../../../sandboxes/index.ts";
import { table, visibleText } from "../../../view/text/index.ts";
import type { Config } from "../../config.ts";
import { print, say } from "../command-line.ts";
import { commandConfig } from "../flags/command-config.ts";
import { addEngineFlags, type EngineFlags, enginesOf } from "../flags/engine-flags.ts";
import { trajectoriesOf } from "../overview/trajectories-of.ts";
import { runFolderOf } from "../records/run-folder-of.ts";
import { terminal } from "../terminal.ts";
import { openEngines } from "./open-engine.ts";

export function doctor(program: Command): void {
  addEngineFlags(program.command("doctor"))
    .description(
      "Asks a server what it can do: token ids, logprobs and what they mean, tool and reasoning parsers, what its template prints, token-in, abort.\nSamples a few short turns. Then looks at this machine: what dead runs left behind, what is kept, and whether memory and disk run short; without an engine at that alone. Ends with 1 where nothing can be trained on what it returns.",
    )
    .option("-c, --config <file>", "YAML file with any of the keys of `alidade config --schema`")
    .option("-r, --run <folder>", "folder of a run or a recording: also say what of its requests the model did not get")
    .option("--json", "print one JSON object: facts and findings")
    .addHelpText(
      "after",
      "\nExamples:\n  alidade doctor\n  alidade doctor --engine http://127.0.0.1:8000\n  alidade doctor --engine http://127.0.0.1:30000 --kind sglang --json",
    )
    .action(async (flags: DoctorFlags) => {
      const signal = terminal().stopSignal();
      const config = await commandConfig(flags.config, { overrides: enginesOf(flags) });
      const looked = (await namesEngine(config)) ? await lookAtEngines(config, signal) : [];
      const machine = await examineMachine(config.disk, signal);
      const requests = flags.run === undefined ? [] : [await lookAtRequests(flags.run)];
      const trainable = looked.length === 0 ? null : looked.every((one) => one.trainable);
      if (flags.json) print(JSON.stringify({ trainable, engines: looked, machine, ...(flags.run !== undefined && { requests }) }));
      else {
        for (const one of looked) printLooked(one);
        printFindings([...machine, ...requests]);
      }
      if (looked.some((one) => !one.trainable)) terminal().exitCode = 1;
    });
}

/** Without one, the machine is looked at alone. */
async function namesEngine({ engine, engines }: Config): Promise<boolean> {
  return engines !== undefined || engine.url !== undefined || (await engineRegistry.load(engine.kind)).defaultUrl !== undefined;
}

async function lookAtEngines(config: Config, signal: AbortSignal): Promise<Looked[]> {
  await using opened = await openEngines(config, signal);
  const looked: Looked[] = [];
  for (const { name, engine } of opened.engines) {
    const facts = await probeEngine(engine, signal);
    looked.push({ name, trainable: facts.missing === null, facts, findings: await examine(engine, facts, signal) });
  }
  return looked;
}

/** Tools and fields that the harnesses of a recorded run sent, and that no engine gets. */
async function lookAtRequests(run: string): Promise<Finding> {
  let omitted: Record<string, number> = {};
  const folder = await runFolderOf(run);
  for await (const { fidelity } of trajectoriesOf(folder, (message) => say(`alidade: ${message}`)))
    omitted = addOmitted([omitted, fidelity.omitted]);
  const leftOut = describeOmitted(omitted);
  if (leftOut === null) return { what: "requests", status: "ok", found: "the model got every tool and field of them", todo: null };
  return {
    what: "requests",
    status: "gap",
    found: visibleText(leftOut),
    todo: "tools of that kind run at a vendor, and such fields have no counterpart at an engine: turn them off in the harness, or give it a tool of its own",
  };
}

type Looked = { name: string; trainable: boolean; facts: EngineFacts; findings: Finding[] };

function printLooked({ name, facts, findings }: Looked): void {
  printFindings(findings);
  say(facts.missing === null ? `\n${name} can be trained on.\n` : `\nNothing can be trained on what ${name} returns: ${facts.missing}\n`);
}

function printFindings(findings: Finding[]): void {
  print(
    table(
      ["", "what", "found"],
      findings.map((one) => [marks[one.status], one.what, one.found]),
    ),
  );
  for (const { what, todo } of findings.filter(hasTodo)) print(`\n${visibleText(`${what}: ${todo}`)}`);
}

const marks: Record<Finding["status"], string> = { ok: "ok", gap: "gap", unknown: "?" };

/** The reason for missing ids is printed once, at the end. */
function hasTodo(finding: Finding): boolean {
  return finding.todo !== null && !(finding.status === "gap" && (finding.what === "token ids" || finding.what === "logprobs"));
}

type DoctorFlags = EngineFlags & { config?: string; run?: string; json?: boolean };
