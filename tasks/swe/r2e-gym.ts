/**
 * R2E-Gym. The image holds the tests, their script and other parts of the answer; the agent's sandbox does not. The row says how
 * each test ended with the fix. Tests that passed must pass again. Tests that failed may pass or fail. The set's own harness
 * wants them to fail again, and so refuses a work that mends more.
 */
import { z } from "zod";
import { ImageName } from "../../base/schema/environment/image-name.ts";
import { readJson } from "../../base/schema/read-json.ts";
import { parseTask, taskError } from "../task-error.ts";
import { Commit, Text } from "./columns.ts";
import { marked, publishedTask } from "./published-task.ts";
import type { Columns, SweSet } from "./swe-set.ts";

const R2eRow = z.looseObject({
  repo_name: z.string().regex(/^[\w.-]+$/, "is no name of a repository"),
  docker_image: ImageName,
  commit_hash: Commit,
  problem_statement: Text,
  expected_output_json: z.union([z.string(), z.record(z.string(), z.string())]),
});

/** Files that the images have beside the repository's own. */
const answers = [
  "expected_test_output.json",
  "execution_result.json",
  "parsed_commit.json",
  "modified_files.json",
  "modified_entities.json",
  "syn_issue.json",
];
const tests = ["run_tests.sh", "r2e_tests"];
/** Repositories whose tests do not print pytest's log. */
const otherLogs = new Set(["tornado"]);

export const r2eGym: SweSet & { idOf(row: Columns): string | null } = {
  name: "r2e-gym",
  title: "R2E-Gym",
  columns: ["repo_name", "docker_image", "commit_hash", "expected_output_json"],
  idOf({ repo_name, commit_hash }) {
    return typeof repo_name === "string" && typeof commit_hash === "string" ? `${repo_name}-${commit_hash}` : null;
  },
  toTask(value, { where }) {
    const row = parseTask(R2eRow, value, where);
    if (otherLogs.has(row.repo_name))
      throw taskError(where, "repo_name", `is ${row.repo_name}, whose tests print a log for which there is no parser`);
    return publishedTask({
      where,
      set: "r2e-gym",
      instance_id: r2eGym.idOf(value) as string,
      repo: row.repo_name,
      instruction: issueOf(row.problem_statement),
      image: row.docker_image,
      workdir: "/testbed",
      env: {
        PATH: "/testbed/.venv/bin:/root/.venv/bin:/root/.local/bin:/root/.cargo/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
      },
      conceal: `rm -rf /r2e_tests /root/r2e_tests ${[...answers, ...tests].join(" ")}`,
      script: marked("[ -e r2e_tests ] || ln -s /r2e_tests r2e_tests", "bash run_tests.sh"),
      parser: "r2egym_pytest",
      parserColumn: "repo_name",
      testPatch: null,
      tests: [...tests, "r2e_tests/**", ...answers],
      failToPass: passing(row.expected_output_json, where),
      passToPass: [],
      gold: null,
      labels: { base_commit: row.commit_hash },
    });
  },
};

/** Returns the issue's text. Some rows have it between tags. */
function issueOf(text: string): string {
  return /\[ISSUE\]([\s\S]*)\[\/ISSUE\]/.exec(text)?.[1]?.trim() || text;
}

function passing(expected: string | Record<string, string>, where: string): string[] {
  const map = parseTask(
    z.record(z.string(), z.string()),
    typeof expected === "string" ? jsonOf(expected, where) : expected,
    `${where}: expected_output_json`,
  );
  const names = Object.entries(map).flatMap(([name, status]) => (status === "PASSED" ? [plainName(name)] : []));
  if (names.length === 0) throw taskError(where, "expected_output_json", "has no test that passed with the fix");
  return [...new Set(names)];
}

/** Returns the name without colours, and without pytest's message after it. */
function plainName(name: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: a colour begins with one
  return name.replace(/\x1b\[[\d;]*m/g, "").split(" - ")[0] as string;
}

function jsonOf(text: string, where: string): unknown {
  try {
    return readJson(text);
  } catch {
    throw taskError(where, "expected_output_json", `is ${JSON.stringify(text.slice(0, 80))}, and no JSON object`);
  }
}
