/** The commits of a repository that change tests and other files, and what a task is made of in each. */
import { applyPatch } from "../../base/files/apply-patch.ts";
import { hashTree, matchesAny, type TreeFile } from "../../base/files/file-tree.ts";
import type { CandidateFix, Fix } from "./fix.ts";
import { instructionOf } from "./instruction.ts";
import { NoTask } from "./no-task.ts";
import type { ChangedFile, Commit, CommitFile, Repository } from "./repository.ts";

export type CommitChoice = {
  /** Globs of test files. */
  tests: readonly string[];
  /** A date as git reads it; older commits are not looked at. */
  since?: string | undefined;
};

/** Commits that are no candidates, by the reason. */
export type PassedOver = Record<"merge" | "first_commit" | "no_test_changed" | "only_tests_changed", number>;

/** Newest first. What is no candidate is counted in `passedOver`. */
export async function* fixingCommits(repository: Repository, choice: CommitChoice, passedOver: PassedOver): AsyncGenerator<CandidateFix> {
  for (const commit of await repository.commits(choice.since)) {
    const [parent, second] = commit.parents;
    if (parent === undefined || second !== undefined) {
      passedOver[parent === undefined ? "first_commit" : "merge"] += 1;
      continue;
    }
    const changed = await repository.changedFiles(parent, commit.id);
    const reason = whyNone(changed, choice.tests);
    if (reason !== null) {
      passedOver[reason] += 1;
      continue;
    }
    const { date, text } = await repository.message(commit.id);
    const told = { parent, date, text };
    yield { key: commit.id, title: text.split("\n", 1)[0] ?? "", fix: () => fixOf(repository, commit, told, changed, choice.tests) };
  }
}

function whyNone(changed: ChangedFile[], tests: readonly string[]): keyof PassedOver | null {
  const isTest = isTestFile(tests);
  if (!changed.some((file) => isTest(file) && !file.removed)) return "no_test_changed";
  return changed.every(isTest) ? "only_tests_changed" : null;
}

function isTestFile(tests: readonly string[]): (file: { path: string | null }) => boolean {
  return ({ path }) => path !== null && matchesAny(path, tests);
}

/** A commit that changes more is a move or a new style, and no fix. */
const mostChanged = 500;

async function fixOf(
  repository: Repository,
  { id }: Commit,
  { parent, date, text }: { parent: string; date: string; text: string },
  changed: ChangedFile[],
  tests: readonly string[],
): Promise<Fix> {
  if (changed.length > mostChanged) throw new NoTask("too_large", `${changed.length} files, and ${mostChanged} are the most`);
  if (instructionOf(text, []) === null) throw new NoTask("no_message", text.trim().slice(0, 200) || "it is empty");
  const files = changed.map(writable);
  const isTest = isTestFile(tests);
  const sources = files.filter((file) => !isTest(file));
  const base = await treeOf(repository, await repository.files(parent));
  const after = await treeOf(
    repository,
    files.filter(({ removed }) => !removed),
  );
  const gold = await textPatch(repository, parent, id, sources);
  assertSame(
    base,
    gold,
    after.filter((file) => !isTest(file)),
    sources,
  );
  return {
    task_id: `${repository.name}-${id.slice(0, 12)}`,
    base,
    tests: after.filter(isTest),
    removed_tests: await textPatch(
      repository,
      parent,
      id,
      files.filter((file) => isTest(file) && file.removed),
    ),
    gold,
    message: text,
    data_source: `git/${repository.name}`,
    labels: { repo: repository.name, commit: id, base_commit: parent, date, instruction: "commit message" },
  };
}

function writable(file: ChangedFile): ChangedFile & { path: string } {
  if (file.path === null) throw new NoTask("not_files", `object ${file.id.slice(0, 12)}`);
  return { ...file, path: file.path };
}

/** Links, submodules and paths that cannot be written are left out of a tree, before the change and after it alike. */
async function treeOf(repository: Repository, files: readonly (Omit<CommitFile, "size"> & { size?: number })[]): Promise<TreeFile[]> {
  const plain = files.filter((file) => file.path !== null);
  const contents = await repository.contents(plain);
  return plain.map(({ path, mode, id }) => ({ path: path as string, mode, content: contents.get(id) as Buffer }));
}

async function textPatch(repository: Repository, from: string, to: string, files: { path: string }[]): Promise<string> {
  const paths = files.map(({ path }) => path);
  const patch = await repository.patch(from, to, paths);
  if (patch === null) throw new NoTask("not_text", paths.slice(0, 5).join(", "));
  return patch;
}

/** What graders apply is our own reading of the patch: it must give what the commit has. */
function assertSame(base: TreeFile[], gold: string, after: TreeFile[], changed: { path: string }[]): void {
  const paths = new Set(changed.map(({ path }) => path));
  const made = applyPatch(base, gold).filter(({ path }) => paths.has(path));
  if (hashTree(made) !== hashTree(after)) throw new NoTask("not_text", "the patch does not give the files of the commit");
}
