/** A recipe as a row with the columns of SWE-bench, as swebench 5 has them, and one of ours. */
import { matchesAny } from "../../base/files/file-tree.ts";
import { Repository } from "../../tasks/made/repository.ts";
import type { SweRecipe } from "./recipes.ts";
import type { SweTrees } from "./sources.ts";

export type RequiredNames = { FAIL_TO_PASS: string[]; PASS_TO_PASS: string[] };
/** The change as two diffs. */
export type SwePatches = { patch: string; test_patch: string };

export async function patchesOf(
  recipe: SweRecipe,
  { before, after }: SweTrees,
  owner: { run_id: string; owner: string },
  signal: AbortSignal,
): Promise<SwePatches> {
  await using repository = await Repository.ofTrees(recipe.instance_id, [before, after], "The fix", owner, signal);
  const [fixed] = await repository.commits();
  const [base = "", id = ""] = [fixed?.parents[0], fixed?.id];
  const paths = (await repository.changedFiles(base, id)).flatMap(({ path }) => path ?? []);
  const isTest = (path: string) => matchesAny(path, recipe.tests);
  const [patch, test_patch] = await Promise.all([
    repository.patch(
      base,
      id,
      paths.filter((path) => !isTest(path)),
    ),
    repository.patch(base, id, paths.filter(isTest)),
  ]);
  if (!patch || !test_patch) throw new Error(`${recipe.instance_id}: its change has no sources, no tests, or is no text`);
  return { patch, test_patch };
}

export type SweImage = { image: string; base_commit: string };

/** `apart`: with the column of ours, for the recipes of Python. Without it their log is read. */
export function rowOf(
  recipe: SweRecipe,
  { patch, test_patch }: SwePatches,
  { image, base_commit }: SweImage,
  required: RequiredNames,
  apart: boolean,
) {
  const { instance_id, repo, language, problem_statement, tests, run } = recipe;
  const isPython = language === "python";
  return {
    ...{ instance_id, repo, base_commit, environment_setup_commit: base_commit, version: "1", hints_text: "" },
    ...{ problem_statement, patch, test_patch, image },
    FAIL_TO_PASS: JSON.stringify(required.FAIL_TO_PASS),
    PASS_TO_PASS: JSON.stringify(required.PASS_TO_PASS),
    eval_script: evalScript(base_commit, test_patch, isPython ? `python3 -m pytest -rA -p no:cacheprovider ${run}` : run),
    log_parser: isPython ? "pytest" : "tap",
    eval_type: "pass_and_fail",
    ...(isPython &&
      apart && { alidade: { test_cmd: ["python3", "{runner}", ...run.split(" ")], log_parser: "pytest", tests: [...tests] } }),
  };
}

const end = "END_OF_TEST_PATCH";

/** As those of swebench 5: the tests of the fix are put there, run between two marks, and put back. */
function evalScript(base_commit: string, test_patch: string, command: string): string {
  const files = Array.from(test_patch.matchAll(/^--- a\/(.*)$/gm), ([, path]) => path).join(" ");
  const putBack = `git checkout ${base_commit} -- ${files}`;
  return `#!/bin/bash
cd /testbed
git config --global --add safe.directory /testbed
${putBack}
git apply -v - <<'${end}'
${test_patch}
${end}
: '>>>>> Start Test Output'
${command}
: '>>>>> End Test Output'
${putBack}
`;
}
