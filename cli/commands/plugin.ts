/** `alidade plugin check <file>`: is this file a plug-in, and does it keep the contract of its kind? */
import { type Command, Option } from "commander";
import { AlidadeError, messageOf } from "../../base/errors.ts";
import { currentOwner } from "../../base/host/owner.ts";
import { type ContractCheck, defaultOf, whyNot } from "../../base/host/plug-ins.ts";
import { newId } from "../../base/schema/ids.ts";
import { engineContract } from "../../engines/contract.ts";
import { engineRegistry } from "../../engines/index.ts";
import { exporterContract } from "../../exporters/contract.ts";
import { exporterRegistry } from "../../exporters/index.ts";
import { graderContract } from "../../graders/contract.ts";
import { graderRegistry } from "../../graders/index.ts";
import { harnessContract } from "../../harnesses/contract.ts";
import { harnessRegistry } from "../../harnesses/index.ts";
import { branchingContract } from "../../rollouts/branching/contract.ts";
import { branchingRegistry } from "../../rollouts/branching/index.ts";
import { readTrajectories } from "../../rollouts/index.ts";
import { sandboxContract } from "../../sandboxes/contract.ts";
import { backendRegistry } from "../../sandboxes/index.ts";
import { allocationContract, allocationRegistry } from "../../service/ledger/index.ts";
import { taskFormatContract } from "../../tasks/contract.ts";
import { taskFormatRegistry } from "../../tasks/index.ts";
import { print, say } from "./command-line.ts";
import { graderOption } from "./flags/plug-in-flags.ts";
import { terminal } from "./terminal.ts";

type Flags = { engine?: string; apiKeyEnv?: string; tasks?: string; run?: string; grader?: string[]; json?: boolean };
type Checked = { says: string; failure: string | null };
type PlugInKind = {
  noun: string;
  members: Readonly<Record<string, string>>;
  /** Loads the file as this kind, and tries each statement of its contract. */
  check(file: string, flags: Flags, signal: AbortSignal): Promise<Checked[]>;
};

const kinds: readonly PlugInKind[] = [
  kindOf(engineRegistry, engineContract, async ({ engine, apiKeyEnv }, signal) => ({
    url: engine ?? null,
    apiKey: apiKeyEnv === undefined ? null : (terminal().env[apiKeyEnv] ?? null),
    signal,
  })),
  kindOf(harnessRegistry, harnessContract, async () => ({})),
  kindOf(graderRegistry, graderContract, async () => ({ spec: null })),
  kindOf(exporterRegistry, exporterContract, async ({ run }) => ({ trajectories: run === undefined ? [] : await readTrajectories(run) })),
  kindOf(backendRegistry, sandboxContract, async (_flags, signal) => ({ owner: await currentOwner(), run_id: newId("run"), signal })),
  kindOf(allocationRegistry, allocationContract, async () => ({})),
  kindOf(branchingRegistry, branchingContract, async () => ({})),
  kindOf(taskFormatRegistry, taskFormatContract, async ({ tasks, grader }) => ({
    path: tasks ?? null,
    graders: await graderRegistry.with(grader ?? []),
  })),
];

export function plugin(program: Command): void {
  program
    .command("plugin")
    .description(
      "Loads the file of a plug-in, says what kind it is, and holds it to the contract of that kind, as the built-in ones are. Ends with 1 where\nsomething of it does not hold. docs/plug-ins.md has an example of each kind.",
    )
    .argument("<action>", "check")
    .argument("<file>", "TypeScript or JavaScript with a default export")
    .option("-e, --engine <url>", "of an engine: a server to ask; without it no turn is sampled")
    .option("--api-key-env <name>", "variable that holds the server's key")
    .option("--tasks <path>", "of a task format: tasks to load")
    .addOption(graderOption())
    .option("-r, --run <folder>", "of an exporter: a run whose trajectories it writes")
    .addOption(new Option("--json", "print one JSON object with the kind and what was checked"))
    .addHelpText(
      "after",
      "\nExamples:\n  alidade plugin check ./my-engine.ts --engine http://127.0.0.1:8000\n  alidade plugin check ./my-exporter.ts --run runs/run1abc --json",
    )
    .action(async (action: string, file: string, flags: Flags) => {
      if (action !== "check")
        throw new AlidadeError("config_invalid", `"${action}" is no action: alidade plugin check ${file}`, { param: "action" });
      const kind = await likeliestKind(file);
      const checked = await kind.check(file, flags, terminal().stopSignal());
      if (flags.json) print(JSON.stringify({ kind: kind.noun, file, checks: checked }));
      else {
        say(`${file}: ${kind.noun}`);
        for (const { says, failure } of checked) say(failure === null ? `  holds: ${says}` : `  DOES NOT HOLD: ${says}: ${failure}`);
      }
      if (checked.some(({ failure }) => failure !== null)) terminal().exitCode = 1;
    });
}

function kindOf<T extends { readonly name: string }, Context>(
  { noun, members, load }: { noun: string; members: Readonly<Record<string, string>>; load(file: string): Promise<T> },
  contract: readonly ContractCheck<T, Context>[],
  contextOf: (flags: Flags, signal: AbortSignal) => Promise<Context>,
): PlugInKind {
  return {
    noun,
    members,
    async check(file, flags, signal) {
      const loaded = await load(file);
      const context = await contextOf(flags, signal);
      const checked: Checked[] = [];
      for (const { says, check } of contract) {
        const failure = await Promise.resolve()
          .then(() => check(loaded, context))
          .then(() => null, messageOf);
        checked.push({ says, failure });
      }
      return checked;
    },
  };
}

/** The kind of which the file lacks nothing, the richest one where that is true of several; else the one of which it has most. */
async function likeliestKind(file: string): Promise<PlugInKind> {
  const found = await defaultOf(file).catch((error: unknown) => {
    throw new AlidadeError("plugin_invalid", `${file} cannot be loaded: ${messageOf(error)}`, { cause: error, param: "file" });
  });
  const required = ({ members }: PlugInKind): string[] => Object.keys(members).filter((name) => !members[name]?.endsWith("?"));
  const present = (kind: PlugInKind): number =>
    typeof found === "object" && found !== null ? required(kind).filter((name) => name in found).length : 0;
  const fit = (kind: PlugInKind): number =>
    whyNot(found, kind.members) === null ? 100 + required(kind).length : present(kind) / required(kind).length;
  return kinds.reduce((best, kind) => (fit(kind) > fit(best) ? kind : best));
}
