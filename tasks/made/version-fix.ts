/** The change between two published versions as one that may become a task. */
import { AlidadeError } from "../../base/errors.ts";
import type { TreeFile } from "../../base/files/file-tree.ts";
import { fixingCommits, type PassedOver } from "./commit-fixes.ts";
import type { CandidateFix } from "./fix.ts";
import type { PublishedVersion } from "./published-version.ts";
import { Repository } from "./repository.ts";

export type VersionPair = {
  registry: string;
  name: string;
  before: PublishedVersion;
  after: PublishedVersion;
  /** What the agent is told; null: what the changelog of the later version says. */
  instruction: string | null;
  /** Globs of test files. */
  tests: readonly string[];
};

/** Nothing where the two differ in no test, or in tests alone: `passedOver` counts it. */
export async function* versionFix(
  pair: VersionPair,
  owner: { run_id: string; owner: string },
  passedOver: PassedOver,
  signal: AbortSignal,
): AsyncGenerator<CandidateFix> {
  const { registry, name, before, after, instruction, tests } = pair;
  const message = instruction === null ? changelogOf(pair) : "Told by the user";
  await using repository = await Repository.ofTrees(name, [before.files, after.files], message, owner, signal);
  const words = [name.replace("/", "-").slice(0, 50), before.version.slice(0, 20), after.version.slice(0, 20)].join("-");
  for await (const candidate of fixingCommits(repository, { tests }, passedOver)) {
    const fix = async () => ({
      ...(await candidate.fix()),
      task_id: words.replace(/[^\w.-]+/g, "-").replace(/^[^A-Za-z0-9]+/, ""),
      ...(instruction !== null && { instruction }),
      data_source: `${registry}/${name}`,
      labels: {
        ...{ package: name, base_version: before.version, fixed_version: after.version },
        ...{ base_integrity: before.integrity, fixed_integrity: after.integrity },
        instruction: instruction === null ? "changelog" : "given",
      },
    });
    yield { key: `${before.version}..${after.version}`, title: `${name} ${before.version} to ${after.version}`, fix };
  }
}

const changelogName = /^(?:changelog|changes|history|news|releases?)(?:\.\w+)?$/i;

/** The lines that the later version's changelog has more. */
function changelogOf({ name, before, after }: VersionPair): string {
  const known = new Set(linesOf(before.files));
  const added = linesOf(after.files).filter((line) => line.trim() === "" || !known.has(line));
  const text = added.join("\n").trim();
  if (text !== "") return text;
  throw new AlidadeError(
    "config_invalid",
    `${name} ${after.version} has no changelog that says what is new: tell the agent with --instruction`,
    {
      param: "instruction",
    },
  );
}

function linesOf(files: TreeFile[]): string[] {
  const found = files.find(({ path }) => changelogName.test(path));
  return found === undefined ? [] : found.content.toString("utf8").split(/\r?\n/);
}
