/** `alidade tasks from-npm` and `from-pypi`: a task out of two published versions of a package. */
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import type { Command } from "commander";
import { AlidadeError, messageOf } from "../../../base/errors.ts";
import { currentOwner } from "../../../base/host/owner.ts";
import { newId } from "../../../base/schema/ids.ts";
import type { PassedOver } from "../../../tasks/made/index.ts";
import { type PackageRegistry, publishedVersion, registries, versionFix } from "../../../tasks/made/index.ts";
import { say } from "../command-line.ts";
import { terminal } from "../terminal.ts";
import { addMakeFlags, type MakeFlags, makeOf, tellMade } from "./make-flags.ts";

type FromVersionsFlags = MakeFlags & { instruction?: string };

export function fromVersions(tasks: Command): void {
  for (const registry of registries) addVerb(tasks, registry);
}

function addVerb(tasks: Command, registry: PackageRegistry): void {
  const verb = `from-${registry.name}`;
  addMakeFlags(tasks.command(verb).argument("<package>", "its name").argument("<before>", "version, or tarball on this disk"))
    .argument("<after>", "version, or tarball, in which the fault is mended")
    .summary(`make a task out of two versions of ${registry.title}`)
    .description(
      "The files of the earlier version are the start, the tests that the later one adds or changes are hidden, and the rest of the difference is the\nknown solution. Tests run in Docker without a network; those that fail before and pass after are found by running them, twice.",
    )
    .option("--instruction <file>", "text that tells the agent what to do; left out: what is new in the later version's changelog")
    .addHelpText(
      "after",
      `\nExamples:\n  alidade tasks ${verb} widgets 1.2.5 1.2.6 --image acme/widgets-tests:1 --test '${registry.name === "npm" ? "node {runner} test' --parser node-test" : "pytest -rA' --parser pytest"} --instruction fault.md`,
    )
    .action((name: string, before: string, after: string, flags: FromVersionsFlags) => make(registry, name, [before, after], flags));
}

async function make(registry: PackageRegistry, name: string, words: [string, string], flags: FromVersionsFlags): Promise<void> {
  const signal = terminal().stopSignal();
  if (!registry.packageName.test(name))
    throw new AlidadeError("config_invalid", `${JSON.stringify(name)} is no name of ${registry.title}`, { param: "package" });
  const instruction = flags.instruction === undefined ? null : await readInstruction(flags.instruction);
  const owner = { run_id: newId("run"), owner: await currentOwner() };
  const { how, run } = await makeOf(flags, owner, signal);
  say(`  fetching ${name} ${words.join(" and ")}`);
  const before = await publishedVersion(registry, name, words[0], signal);
  const after = await publishedVersion(registry, name, words[1], signal);
  const passedOver: PassedOver = { merge: 0, first_commit: 0, no_test_changed: 0, only_tests_changed: 0 };
  const pair = { registry: registry.name, name, before, after, instruction, tests: how.tests };
  const out = resolve(flags.out ?? `tasks-${name.replace("/", "-")}`);
  const tried = await run(versionFix(pair, owner, passedOver, signal), { out, source: `${registry.name}:${name}` });
  // The earlier version alone is no candidate, which says nothing of the package.
  tellMade(out, tried, { ...passedOver, first_commit: 0 }, flags.json === true);
}

async function readInstruction(file: string): Promise<string> {
  const text = await readFile(file, "utf8").catch((error: unknown) => {
    throw new AlidadeError("config_invalid", `--instruction ${file} cannot be read: ${messageOf(error)}`, { param: "instruction" });
  });
  if (text.trim() !== "") return text;
  throw new AlidadeError("config_invalid", `--instruction ${file} is empty: say there what the agent is to do`, { param: "instruction" });
}
