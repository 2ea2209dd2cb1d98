/**
 * Multi-SWE-bench and Multi-SWE-RL. Each pull request has an image, with the repository at /home/<its name> and a script that runs
 * the tests. multi-swe-repos.ts says which parser reads the log. A row's maps are published in two forms: as name -> statuses,
 * or as lists of equal length, for tables whose columns need fixed names.
 */
import { z } from "zod";
import { parseTask, taskError } from "../task-error.ts";
import { Commit, Text, taskIdOf } from "./columns.ts";
import { multiSweParserOf, multiSweRepos } from "./multi-swe-repos.ts";
import { marked, publishedTask } from "./published-task.ts";
import type { Columns, SweSet } from "./swe-set.ts";

const Name = z
  .string()
  .regex(/^[\w.-]+$/, "is no name of an organisation or repository")
  .refine((name) => !/^\.\.?$/.test(name), "is a folder of every folder");
const Run = z.looseObject({ fix: z.string().nullish() }).nullable();
const Lists = z.looseObject({ name: z.array(z.string()), fix: z.array(z.string().nullable()) });
const Issue = z.looseObject({ title: z.string().nullish(), body: z.string().nullish() });
const IssueLists = z.looseObject({ title: z.array(z.string().nullable()), body: z.array(z.string().nullable()) });

/** Makes a Map of such lists. Their names come from strangers, so they are no keys of a plain object. */
const fromLists = (value: unknown): unknown => {
  const lists = Lists.safeParse(value);
  if (!lists.success) return isPlain(value) ? new Map(Object.entries(value)) : value;
  return new Map(lists.data.name.map((name, at) => [name, { fix: lists.data.fix[at] }]));
};
const isPlain = (value: unknown): value is object =>
  value !== null && typeof value === "object" && !Array.isArray(value) && !(value instanceof Map);
const Runs = z.preprocess(fromLists, z.map(z.string(), Run));
const Issues = z.preprocess((value) => {
  const lists = IssueLists.safeParse(value);
  return lists.success ? lists.data.title.map((title, at) => ({ title, body: lists.data.body[at] })) : value;
}, z.array(Issue));

const MultiRow = z.looseObject({
  org: Name,
  repo: Name,
  number: z.coerce.number().int().positive(),
  title: z.string().nullish(),
  body: z.string().nullish(),
  base: z.looseObject({ sha: Commit }),
  fix_patch: Text,
  test_patch: Text,
  /** Such a row uses another class of the set's code, and an image that was made in another way. */
  number_interval: z.string().nullish(),
  tag: z.string().nullish(),
  resolved_issues: Issues.default([]),
  fixed_tests: Runs.refine((tests) => tests.size > 0, "names no test: a task without one cannot be failed"),
  p2p_tests: Runs.default(new Map()),
});

export const multiSwe: SweSet & { idOf(row: Columns): string | null } = {
  name: "multi-swe",
  title: "Multi-SWE-bench",
  columns: ["org", "repo", "number", "fix_patch", "test_patch"],
  idOf({ org, repo, number }) {
    return org !== undefined && repo !== undefined && number !== undefined ? `${org}__${repo}-${number}` : null;
  },
  toTask(value, { where }) {
    const row = parseTask(MultiRow, value, where);
    const repo = `${row.org}/${row.repo}`;
    for (const column of ["number_interval", "tag"] as const)
      if (row[column])
        throw taskError(where, column, `is ${JSON.stringify(row[column])}: how the tests of such a part of ${repo} are read is not known`);
    const parser = multiSweParserOf(repo, row.number);
    if (parser === null)
      throw taskError(where, "repo", `is ${repo}, and the log of its tests has no parser here; there are ${multiSweRepos.join(", ")}`);
    return publishedTask({
      where,
      set: "multi-swe",
      instance_id: taskIdOf(multiSwe.idOf(value) as string),
      repo,
      instruction: instructionOf(row, where),
      image: `mswebench/${row.org}_m_${row.repo}:pr-${row.number}`.toLowerCase(),
      workdir: `/home/${row.repo}`,
      base: row.base.sha,
      // The image has the fix and the tests beside the repository.
      conceal: "rm -f /home/fix.patch /home/test.patch",
      script: marked("", "bash /home/run.sh"),
      parser,
      parserColumn: "repo",
      testPatch: row.test_patch,
      failToPass: passing(row.fixed_tests),
      passToPass: passing(row.p2p_tests),
      gold: row.fix_patch,
      labels: { base_commit: row.base.sha },
    });
  },
};

function passing(tests: z.infer<typeof Runs>): string[] {
  return [...tests].flatMap(([name, run]) => (run === null || (run.fix ?? "PASS") !== "PASS" ? [] : [name]));
}

/** Returns the issues that the pull request resolved. The text of the pull request itself may tell the solution. */
function instructionOf({ resolved_issues }: z.infer<typeof MultiRow>, where: string): string {
  const texts = resolved_issues.map(({ title, body }) => [title, body].filter((part) => part?.trim()).join("\n\n"));
  const text = texts.filter((part) => part !== "").join("\n\n");
  if (text === "") throw taskError(where, "resolved_issues", "has no issue with a text, and the instruction would be empty");
  return text;
}
