/**
 * Multi-SWE-bench and Multi-SWE-RL: an image a pull request, the repository at /home/<its name>, and a script in the image
 * that runs the tests. Each repository's log has a parser of its own there; those of Go, Rust and CTest are known.
 */
import { z } from "zod";
import { parseTask, taskError } from "../task-error.ts";
import { Commit, Text, taskIdOf } from "./columns.ts";
import { marked, publishedTask } from "./published-task.ts";
import type { Columns, SweSet } from "./swe-set.ts";

const Name = z
  .string()
  .regex(/^[\w.-]+$/, "is no name of an organisation or repository")
  .refine((name) => !/^\.\.?$/.test(name), "is a folder of every folder");
const Runs = z.record(z.string(), z.looseObject({ fix: z.string().nullish() }).nullable());

const MultiRow = z.looseObject({
  org: Name,
  repo: Name,
  number: z.coerce.number().int().positive(),
  title: z.string().nullish(),
  body: z.string().nullish(),
  base: z.looseObject({ sha: Commit }),
  fix_patch: Text,
  test_patch: Text,
  resolved_issues: z.array(z.looseObject({ title: z.string().nullish(), body: z.string().nullish() })).default([]),
  fixed_tests: Runs.refine((tests) => Object.keys(tests).length > 0, "names no test: a task without one cannot be failed"),
  p2p_tests: Runs.default({}),
});

/** By repository, the set's own parser of its log. */
const go = ["cli/cli", "grpc/grpc-go", "zeromicro/go-zero"];
const rust = [
  "BurntSushi/ripgrep",
  "clap-rs/clap",
  "nushell/nushell",
  "rayon-rs/rayon",
  "serde-rs/serde",
  "sharkdp/bat",
  "sharkdp/fd",
  "tokio-rs/bytes",
  "tokio-rs/tokio",
  "tokio-rs/tracing",
];
const cmake = ["fmtlib/fmt", "nlohmann/json", "simdjson/simdjson", "yhirose/cpp-httplib", "catchorg/Catch2"];
const parsers = new Map([
  ...go.map((repo) => [repo, "multi_swe_go"] as const),
  ...rust.map((repo) => [repo, "parse_log_cargo"] as const),
  ...cmake.map((repo) => [repo, "multi_swe_ctest"] as const),
]);

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
    const parser = parsers.get(repo);
    if (parser === undefined)
      throw taskError(
        where,
        "repo",
        `is ${repo}, and the log of its tests has no parser here; there are ${[...parsers.keys()].join(", ")}`,
      );
    return publishedTask({
      where,
      set: "multi-swe",
      instance_id: taskIdOf(multiSwe.idOf(value) as string),
      repo,
      instruction: instructionOf(row, where),
      image: `mswebench/${row.org}_m_${row.repo}:pr-${row.number}`.toLowerCase(),
      workdir: `/home/${row.repo}`,
      base: row.base.sha,
      // The image's build leaves the fix and the tests beside the repository.
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
  return Object.entries(tests).flatMap(([name, run]) => (run === null || (run.fix ?? "PASS") !== "PASS" ? [] : [name]));
}

/** The issues that the pull request resolved: its own text may tell the solution. */
function instructionOf({ resolved_issues }: z.infer<typeof MultiRow>, where: string): string {
  const texts = resolved_issues.map(({ title, body }) => [title, body].filter((part) => part?.trim()).join("\n\n"));
  const text = texts.filter((part) => part !== "").join("\n\n");
  if (text === "") throw taskError(where, "resolved_issues", "has no issue with a text, and the instruction would be empty");
  return text;
}
