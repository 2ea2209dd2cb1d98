/**
 * SWE-bench Pro. The repository is at /app. Each instance has two scripts that run its tests and read their log:
 * `run_scripts/<instance_id>/run_script.sh` and `parser.py`. The authors publish them beside the rows; here they must lie beside
 * the file of rows.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { parseTask, taskError } from "../task-error.ts";
import { Common, Names, RequiredNames, Text } from "./columns.ts";
import { marked, publishedTask, quoted } from "./published-task.ts";
import type { SweSet } from "./swe-set.ts";

const { FAIL_TO_PASS: _failToPass, PASS_TO_PASS: _passToPass, ...common } = Common;

/** Some columns hold lists as Python prints them. */
const python = (value: unknown): unknown => (typeof value === "string" ? pythonList(value) : value);
const PythonNames = z.preprocess(python, Names);

const ProRow = z.looseObject({
  ...common,
  instance_id: z.string().regex(/^[\w.-]+$/, "is no instance: letters, digits, dots, dashes and underscores are wanted"),
  dockerhub_tag: z.string().regex(/^[\w][\w.-]{0,127}$/, "is no tag of an image"),
  fail_to_pass: z.preprocess(python, RequiredNames),
  pass_to_pass: PythonNames,
  before_repo_set_cmd: Text,
  selected_test_files_to_run: PythonNames,
  requirements: z.string().nullish(),
  interface: z.string().nullish(),
});

export const sweBenchPro: SweSet = {
  name: "swe-bench-pro",
  title: "SWE-bench Pro",
  columns: ["instance_id", "dockerhub_tag", "selected_test_files_to_run", "before_repo_set_cmd"],
  async toTask(value, { where, folder }) {
    const row = parseTask(ProRow, value, where);
    const scripts = join(folder, "run_scripts", row.instance_id);
    const [run, read] = await Promise.all([scriptAt(scripts, "run_script.sh", where), scriptAt(scripts, "parser.py", where)]);
    const place = [put("run_script.sh", run), put("parser.py", read)].join("\n");
    const testFiles = row.before_repo_set_cmd.trim().split("\n").at(-1) as string;
    const chosen = quoted(row.selected_test_files_to_run.join(","));
    return publishedTask({
      where,
      set: "swe-bench-pro",
      instance_id: row.instance_id,
      repo: row.repo,
      instruction: instructionOf(row),
      image: `jefzda/sweap-images:${row.dockerhub_tag}`,
      workdir: "/app",
      setup: `git config --global --add safe.directory "$PWD"\ngit reset -q --hard ${row.base_commit}\ngit checkout -q ${row.base_commit}`,
      script: marked(
        `mkdir -p ${at} && ${place}\ngit config --global --add safe.directory "$PWD"\n${testFiles}`,
        `bash ${at}/run_script.sh ${chosen} > ${at}/stdout.log 2> ${at}/stderr.log; python3 ${at}/parser.py ${at}/stdout.log ${at}/stderr.log ${at}/output.json >/dev/null; cat ${at}/output.json`,
      ),
      parser: "swe_bench_pro",
      parserColumn: "repo",
      // The last line of before_repo_set_cmd takes the test files from the fixing commit.
      testPatch: null,
      tests: Array.from(row.test_patch.matchAll(/^diff --git a\/.* b\/(.*)$/gm), ([, path]) => path as string),
      failToPass: row.fail_to_pass,
      passToPass: row.pass_to_pass,
      gold: row.patch,
      labels: { base_commit: row.base_commit },
    });
  },
};

/** The folder in which the set's own harness has the scripts. */
const at = "/workspace";

function put(name: string, text: string): string {
  return `echo ${Buffer.from(text).toString("base64")} | base64 -d > ${at}/${name}`;
}

async function scriptAt(folder: string, name: string, where: string): Promise<string> {
  return readFile(join(folder, name), "utf8").catch(() => {
    throw taskError(where, "run_scripts", `there is no ${join(folder, name)}: copy the set's folder run_scripts beside the file of rows`);
  });
}

function instructionOf({ problem_statement, requirements, interface: names }: z.infer<typeof ProRow>): string {
  const parts = [problem_statement, requirements && `Requirements:\n${requirements}`, names && `New interfaces introduced:\n${names}`];
  return parts.filter((part) => part).join("\n\n");
}

/** Turns `['a', "it's"]` into JSON. Leaves other text unchanged. */
function pythonList(text: string): unknown {
  if (!/^\s*\[\s*'|',\s*['"]|",\s*'/.test(text)) return text;
  const names: string[] = [];
  const literal = /\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")\s*(,|\]\s*$)/y;
  literal.lastIndex = text.indexOf("[") + 1;
  for (let found = literal.exec(text); found; found = literal.exec(text)) {
    names.push(unescaped(found[1] ?? found[2] ?? ""));
    if (found[3] !== ",") return names;
  }
  return text;
}

const escapes = new Map([
  ["n", "\n"],
  ["t", "\t"],
  ["r", "\r"],
]);

/** The escapes of Python that occur in names of tests. */
function unescaped(text: string): string {
  return text.replace(/\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|(.))/gis, (_all, byte, unit, one: string) =>
    byte || unit ? String.fromCharCode(Number.parseInt(byte ?? unit, 16)) : (escapes.get(one) ?? one),
  );
}
