/** Rows as the SWE sets publish them: what task each becomes, and what is said of a row that lacks what its set needs. */
import assert from "node:assert/strict";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import type { AlidadeError } from "../../../base/errors.ts";
import { TestsSpec } from "../../../graders/tests.ts";
import { loadTasks } from "../../../tasks/load-tasks.ts";
import { readParquet } from "../../../tasks/readers/read-parquet.ts";

const patch = "diff --git a/src/a.py b/src/a.py\n--- a/src/a.py\n+++ b/src/a.py\n@@ -1 +1 @@\n-one\n+two\n";
const test_patch =
  "diff --git a/tests/test_a.py b/tests/test_a.py\n--- a/tests/test_a.py\n+++ b/tests/test_a.py\n@@ -1 +1 @@\n-old\n+new\n";
const common = {
  instance_id: "psf__requests-1142",
  repo: "psf/requests",
  base_commit: "22623bd8c265b78b161542663ee980738441c307",
  patch,
  test_patch,
  problem_statement: "requests.get is ALWAYS sending content length",
  version: "1.1",
  FAIL_TO_PASS: '["tests/test_a.py::test_new"]',
  PASS_TO_PASS: '["tests/test_a.py::test_old"]',
};
const evalScript =
  "cd /testbed\ngit apply -v - <<'EOF'\nx\nEOF\n: '>>>>> Start Test Output'\npytest -rA tests/test_a.py\n: '>>>>> End Test Output'\ngit checkout x";

const rows = {
  "swe-bench": common,
  "swe-bench 5": {
    ...common,
    repo: "redis/redis",
    instance_id: "redis__redis-1",
    image: "my/image:1",
    eval_script: evalScript,
    log_parser: "parse_log_redis",
    eval_type: "pass_and_fail",
  },
  multilingual: { ...common, instance_id: "google__gson-2024", repo: "google/gson", version: "2024" },
  "multilingual number": { ...common, instance_id: "jekyll__jekyll-8761", repo: "jekyll/jekyll", version: 8761 },
  "nemo-gym": {
    responses_create_params: {
      input: [],
      metadata: {
        instance_id: "psf__requests-1142",
        dataset_name: "princeton-nlp/SWE-bench_Verified",
        instance_dict: JSON.stringify(common),
      },
    },
  },
  "swe-lancer": {
    question_id: "18641_837",
    variant: "ic_swe",
    price: 1000,
    price_limit: 2000000,
    prompt: "[]",
    manager_data: null,
    manager_commit: null,
    acceptable_folders: "['18641_837']",
    cwd: "/app/expensify",
  },
  "nemotron patch": {
    responses_create_params: { input: [] },
    instance: common,
    metadata: { image: "/swebench-images/a.sif" },
    dataset_name: "SWE-Gym/SWE-Gym",
    mode: "eval",
  },
  "nemotron judge": { responses_create_params: { input: [] }, options: [{ A: patch }], expected_answer: "B", instance_id: "a__b-1" },
  "nemotron pivot": { responses_create_params: { input: [] }, expected_action: { type: "function_call" }, uuid: "1" },
  deepswe: { responses_create_params: { input: [] }, image: "a/b:1", task_id: "t", verifier_metadata: { task_id: "t" } },
  "swe-gym": { ...common, instance_id: "getmoto__moto-5406", repo: "getmoto/moto" },
  "swe-bench-live": { ...common, repo: "any/thing", instance_id: "any__thing-7", test_cmds: ["pytest -rA"], log_parser: "pytest" },
  "swe-rebench": {
    ...common,
    repo: "any/thing",
    instance_id: "any__thing-8",
    install_config: { test_cmd: "pytest --no-header -rA", log_parser: "parse_log_pytest" },
  },
  "swe-rebench-v2": {
    ...common,
    repo: "Any/Thing",
    instance_id: "any__thing-9",
    image_name: "swerebenchv2/any-thing:9",
    install_config: { test_cmd: ["make", "go test -v ./..."], log_parser: "parse_log_gotest" },
  },
  "swe-smith": {
    instance_id: "mido__mido.a0158ff9.func_basic__abc",
    repo: "swesmith/mido__mido.a0158ff9",
    image_name: "jyangballin/swesmith.x86_64.mido_1776_mido.a0158ff9",
    patch,
    problem_statement: "It is broken.",
    FAIL_TO_PASS: ["tests/test_a.py::test_new"],
    PASS_TO_PASS: [],
  },
  "r2e-gym": {
    repo_name: "pillow",
    docker_image: "namanjain12/pillow_final:0a1b2c3d",
    commit_hash: "0a1b2c3d0a1b2c3d0a1b2c3d0a1b2c3d0a1b2c3d",
    problem_statement: "[ISSUE]\nIt is broken.\n[/ISSUE]",
    expected_output_json: JSON.stringify({
      "TestA.test_b": "PASSED",
      "TestA.test_c - why": "FAILED",
      "\u001b[1mTestA.test_d\u001b[0m": "PASSED",
    }),
  },
  "swe-bench-pro": {
    ...common,
    instance_id: `instance_internetarchive__openlibrary-${"a".repeat(40)}-v${"b".repeat(40)}`,
    repo: "internetarchive/openlibrary",
    dockerhub_tag: "internetarchive.openlibrary-1",
    before_repo_set_cmd: "git reset --hard x\ngit checkout abc -- tests/test_a.py",
    selected_test_files_to_run: "['tests/test_a.py', \"it's\"]",
    fail_to_pass: "['a | it\\'s new']",
    pass_to_pass: "[]",
    requirements: "None is returned.",
    interface: "",
  },
  "multi-swe": {
    org: "cli",
    repo: "cli",
    number: 10388,
    base: { sha: "22623bd8c265b78b161542663ee980738441c307" },
    fix_patch: patch,
    test_patch,
    resolved_issues: [{ number: 1, title: "It is broken", body: "Really." }],
    fixed_tests: { TestNew: { run: "FAIL", test: "FAIL", fix: "PASS" } },
    p2p_tests: { TestOld: { run: "PASS", test: "PASS", fix: "PASS" } },
  },
  "multi-swe java": {
    org: "fasterxml",
    repo: "jackson-core",
    number: 1309,
    number_interval: "",
    tag: "",
    base: { label: "FasterXML:2.17", ref: "2.17", sha: "22623bd8c265b78b161542663ee980738441c307" },
    fix_patch: patch,
    test_patch,
    resolved_issues: { number: [1], title: ["It is broken"], body: [null] },
    fixed_tests: { name: ["constructor", "b.C"], run: ["NONE", "NONE"], test: ["NONE", "FAIL"], fix: ["PASS", "PASS"] },
    p2p_tests: { name: [], run: [], test: [], fix: [] },
  },
};

async function fileOf(t: TestContext, lines: unknown[], name = "rows.jsonl"): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "alidade-swe-"));
  t.after(() => rm(folder, { recursive: true }));
  const scripts = join(folder, "run_scripts", rows["swe-bench-pro"].instance_id);
  await mkdir(scripts, { recursive: true });
  await writeFile(join(scripts, "run_script.sh"), "pytest\n");
  await writeFile(join(scripts, "parser.py"), "print()\n");
  const path = join(folder, name);
  await writeFile(path, name.endsWith(".json") ? JSON.stringify(lines) : lines.map((line) => JSON.stringify(line)).join("\n"));
  return path;
}

async function taskOf(t: TestContext, row: unknown) {
  const [task] = await loadTasks(await fileOf(t, [row]));
  assert.ok(task);
  return { ...task, spec: TestsSpec.parse(task.grader), script: TestsSpec.parse(task.grader).command.slice(2).join("") };
}

for (const [set, image, workdir, parser] of [
  ["swe-bench", "swebench/sweb.eval.x86_64.psf_1776_requests-1142:latest", "/testbed", "parse_log_requests"],
  ["swe-bench 5", "my/image:1", "/testbed", "parse_log_redis"],
  ["swe-gym", "xingyaoww/sweb.eval.x86_64.getmoto_s_moto-5406:latest", "/testbed", "parse_log_pytest"],
  ["swe-bench-live", "starryzhang/sweb.eval.x86_64.any_1776_thing-7:latest", "/testbed", "parse_log_pytest"],
  ["swe-rebench", "swerebench/sweb.eval.x86_64.any_1776_thing-8:latest", "/testbed", "parse_log_pytest"],
  ["swe-rebench-v2", "swerebenchv2/any-thing:9", "/Thing", "rebench_v2.parse_log_gotest"],
  ["swe-smith", "jyangballin/swesmith.x86_64.mido_1776_mido.a0158ff9", "/testbed", "swesmith_pytest"],
  ["r2e-gym", "namanjain12/pillow_final:0a1b2c3d", "/testbed", "r2egym_pytest"],
  ["swe-bench-pro", "jefzda/sweap-images:internetarchive.openlibrary-1", "/app", "swe_bench_pro"],
  ["multi-swe", "mswebench/cli_m_cli:pr-10388", "/home/cli", "multi_swe_go_subtests"],
  ["multi-swe java", "mswebench/fasterxml_m_jackson-core:pr-1309", "/home/jackson-core", "multi_swe_maven_coloured"],
  ["multilingual", "swebench/sweb.eval.x86_64.google_1776_gson-2024:latest", "/testbed", "parse_log_maven"],
  ["multilingual number", "swebench/sweb.eval.x86_64.jekyll_1776_jekyll-8761:latest", "/testbed", "parse_log_cucumber"],
  ["nemo-gym", "swebench/sweb.eval.x86_64.psf_1776_requests-1142:latest", "/testbed", "parse_log_requests"],
] as const)
  test(`a row of ${set} is known by its columns, and names its image, its folder and its log's parser`, async (t) => {
    const { environment, spec, labels } = await taskOf(t, rows[set]);
    assert.deepEqual([environment.image, environment.workdir, spec.parser], [image, workdir, parser]);
    const known = /^(?:multilingual|nemo-gym)/.test(set) ? "swe-bench" : set.split(" ")[0];
    assert.deepEqual([labels.set, environment.user, environment.platform], [known, "root", "linux/amd64"]);
    assert.match(environment.conceal?.join(" ") ?? "", /commit-tree/);
    assert.ok(spec.protected?.includes(".git/**"));
  });

test("the tests of a row run as its set's tables say, on the files of its test patch", async (t) => {
  const requests = await taskOf(t, rows["swe-bench"]);
  assert.match(requests.script, /conda activate testbed[\s\S]*Start Test Output'\n\{ pytest -rA tests\/test_a\.py\n\}/);
  assert.deepEqual(
    [requests.spec.test_patch, requests.gold_patch, requests.spec.fail_to_pass],
    [test_patch, patch, ["tests/test_a.py::test_new"]],
  );
  const names = test_patch.replaceAll("tests/test_a.py", "tests/a/tests.py") + test_patch.replaceAll("tests/test_a.py", "tests/a/b.json");
  const django = { ...common, repo: "django/django", instance_id: "django__django-1", version: "1.9", test_patch: names };
  assert.match((await taskOf(t, django)).script, /\{ \.\/tests\/runtests\.py --verbosity 2 a\.tests\n/);
  assert.match((await taskOf(t, { ...django, version: "4.2" })).script, /--settings=test_sqlite --parallel 1 a\.tests\n/);
  assert.match((await taskOf(t, rows["swe-rebench"])).script, /pytest --no-header -rA tests\/test_a\.py\n/);
  // Its code ends at the first command that fails, and reads stderr behind stdout.
  assert.match((await taskOf(t, rows["swe-rebench-v2"])).script, /set -e\nmake\ngo test -v \.\/\.\.\.\n\) 2> "\$alidade_errors"/);
  const two = { test_cmd: "pytest -rA", log_parser: "parse_log_pytest_v2" };
  assert.equal((await taskOf(t, { ...rows["swe-rebench"], install_config: two })).spec.parser, "swebench_4.parse_log_pytest_v2");
  assert.equal((await taskOf(t, { ...rows["swe-rebench-v2"], install_config: two })).spec.parser, "rebench_v2.parse_log_pytest_v2");
  const pro = await taskOf(t, rows["swe-bench-pro"]);
  assert.match(pro.script, /git checkout abc -- tests\/test_a\.py[\s\S]*run_script\.sh 'tests\/test_a\.py,it'\\''s' >/);
  assert.deepEqual(
    [pro.spec.fail_to_pass, pro.task_id.length, pro.instruction.endsWith("Requirements:\nNone is returned.")],
    [["a | it's new"], 100, true],
  );
});

test("Multilingual's rows run as swebench 4's tables say, and each command stands in the log", async (t) => {
  const { script, spec } = await taskOf(t, rows.multilingual);
  assert.match(
    script,
    /\{ set -x\nmvnd test -B -T 1C -pl gson -Dtest=com\.google\.gson\.functional\.FieldNamingTest#testUpperCaseWithUnderscores\nmvnd/,
  );
  assert.equal(spec.test_patch, test_patch);
});

test("Multi-SWE's tests are read in both of their forms, and those that passed with the fix are required", async (t) => {
  const { spec, instruction } = await taskOf(t, rows["multi-swe java"]);
  assert.deepEqual([spec.fail_to_pass, spec.pass_to_pass, instruction], [["constructor", "b.C"], [], "It is broken"]);
});

test("a row of swebench 5 is graded by its own script, with a line that says how the tests ended", async (t) => {
  const { script, spec } = await taskOf(t, rows["swe-bench 5"]);
  assert.equal(spec.test_patch, undefined);
  assert.ok(spec.protected?.includes("tests/test_a.py"));
  assert.match(
    script,
    /pytest -rA tests\/test_a\.py\ntask_tests_ended=\$\?\n: '>>>>> End Test Output'\necho; echo ">>>>> Test Exit Code: \$task_tests_ended"\ngit checkout x/,
  );
});

test("a parser of swebench that goes by the instance is the one that it chooses, and is refused where it chooses none", async (t) => {
  const row = { ...rows["swe-bench 5"], repo: "jekyll/jekyll", log_parser: "parse_log_jekyll" };
  assert.equal((await taskOf(t, { ...row, instance_id: "jekyll__jekyll-9141" })).spec.parser, "parse_log_minitest");
  await assert.rejects(taskOf(t, { ...row, instance_id: "jekyll__jekyll-1" }), { message: /log_parser: is "parse_log_jekyll"/ });
});

test("a script that is longer than an argument may be goes in several", async (t) => {
  const long = evalScript.replace("\nx\n", `\n${"x".repeat(200_000)}\n`);
  const { spec } = await taskOf(t, { ...rows["swe-bench 5"], eval_script: long });
  assert.ok(spec.command.length > 6 && spec.command.every((word) => word.length < 100_000));
  assert.match(spec.command.slice(4).join(""), /^exec 2>&1\nset -x\ncd \/testbed/);
});

test("what holds the answer is taken away from the agent, and what the bug is from the known solution", async (t) => {
  const r2e = await taskOf(t, rows["r2e-gym"]);
  assert.match(
    r2e.environment.conceal?.at(-1) ?? "",
    /^rm -rf \/r2e_tests \/root\/r2e_tests expected_test_output\.json .*run_tests\.sh r2e_tests\n/,
  );
  assert.deepEqual([r2e.instruction, r2e.spec.fail_to_pass, r2e.gold_patch], ["It is broken.", ["TestA.test_b", "TestA.test_d"], null]);
  const smith = await taskOf(t, rows["swe-smith"]);
  assert.match(smith.environment.conceal?.at(-1) ?? "", /^rm -f -- tests\/test_a\.py\n/);
  assert.match(smith.environment.setup?.command.at(-1) ?? "", /git apply - <<'THE_END_OF_THE_BUG'\ndiff --git/);
  assert.match(smith.gold_patch ?? "", /--- a\/src\/a\.py\n\+\+\+ b\/src\/a\.py\n@@ -1,1 \+1,1 @@\n\+one\n-two\n/);
  const multi = await taskOf(t, rows["multi-swe"]);
  assert.deepEqual([multi.task_id, multi.instruction], ["cli__cli-10388", "It is broken\n\nReally."]);
  assert.match(multi.environment.conceal?.at(-1) ?? "", /^rm -f \/home\/fix\.patch/);
});

for (const [set, change, field, says] of [
  ["swe-bench", { repo: "no/table" }, "repo", /is no\/table, whose tests no table knows: give the row as swebench 5 has it/],
  ["swe-bench", { base_commit: "main; rm -rf /" }, "base_commit", /is no commit/],
  ["swe-bench", { FAIL_TO_PASS: "[]" }, "FAIL_TO_PASS", /names no test/],
  ["swe-bench", { PASS_TO_PASS: "a, b" }, "PASS_TO_PASS", /is the text "a, b", and no JSON list/],
  ["swe-bench", { patch: "no patch" }, "patch", /unified diff is wanted/],
  ["multi-swe", { test_patch: "no patch" }, "test_patch", /unified diff is wanted/],
  ["swe-bench", { patch: undefined }, "patch", /patch: is missing: expected string/],
  ["swe-bench", { problem_statement: " " }, "problem_statement", /is empty/],
  ["swe-bench 5", { log_parser: "parse_log_none" }, "log_parser", /is "parse_log_none", and there is no log parser of that name/],
  ["swe-bench 5", { log_parser: undefined }, "log_parser", /is missing/],
  ["swe-bench 5", { eval_script: "pytest" }, "eval_script", /prints no line ">>>>> Start Test Output"/],
  ["swe-bench 5", { eval_type: "fail_only" }, "eval_type", /pass_and_fail is wanted/],
  ["swe-bench 5", { alidade: "apart" }, "alidade", /is the text "apart", and no JSON object/],
  [
    "swe-bench 5",
    { alidade: { test_cmd: ["pytest"], log_parser: "pytest", tests: ["tests/**"] } },
    "alidade.test_cmd",
    /has no word "\{runner\}", which stands for our runner/,
  ],
  [
    "swe-bench 5",
    { alidade: { test_cmd: ["{runner}"], log_parser: "cargo", tests: ["tests/**"] } },
    "alidade.log_parser",
    /is "cargo": tests run apart with tape, node-test, pytest, unittest/,
  ],
  ["swe-bench 5", { image: "--privileged" }, "image", /is "--privileged": a name of an image/],
  [
    "swe-rebench",
    { install_config: { log_parser: "parse_log_pytest" } },
    "install_config.test_cmd",
    /test_cmd: is missing: expected array/,
  ],
  [
    "swe-rebench-v2",
    { install_config: { test_cmd: ["x"], log_parser: "parse_log_p5js" } },
    "install_config.log_parser",
    /is "parse_log_p5js", and there is no reader here for SWE-rebench-V2's parser of that name/,
  ],
  ["swe-rebench-v2", { install_config: { test_cmd: ["x"], log_parser: "constructor" } }, "install_config.log_parser", /is "constructor"/],
  ["swe-rebench-v2", { repo: "any/.." }, "repo", /is no repository: owner\/name is wanted/],
  ["swe-smith", { FAIL_TO_PASS: ["TestA"] }, "repo", /only SWE-smith's rows of Python and pytest are loaded/],
  ["r2e-gym", { repo_name: "tornado" }, "repo_name", /no parser/],
  ["r2e-gym", { expected_output_json: "{}" }, "expected_output_json", /no test that passed/],
  ["swe-bench-pro", { instance_id: "instance_other" }, "run_scripts", /copy the set's folder run_scripts beside the file of rows/],
  ["swe-bench-pro", { instance_id: "../../etc" }, "instance_id", /is no instance/],
  ["multi-swe", { repo: "other" }, "repo", /is cli\/other, and the log of its tests has no parser here/],
  [
    "multi-swe java",
    { number_interval: "jackson-core_2_to_1" },
    "number_interval",
    /is "jackson-core_2_to_1": how the tests of such a part/,
  ],
  ["multi-swe java", { fixed_tests: { name: [], run: [], test: [], fix: [] } }, "fixed_tests", /names no test/],
  ["multi-swe java", { fixed_tests: [{ name: "a", fix: "PASS" }] }, "fixed_tests", /expected map/],
  ["swe-lancer", {}, "variant", /is "ic_swe", and rows of SWE-Lancer name no image/],
  ["nemotron patch", {}, "metadata.image", /is "\/swebench-images\/a\.sif", an image for Singularity/],
  ["nemotron judge", {}, "options", /patches to choose from: the row has no repository/],
  ["nemotron pivot", {}, "expected_action", /the one tool call that is right/],
  ["deepswe", {}, "verifier_metadata", /load the set's Harbor folders/],
  ["multi-swe", { resolved_issues: [] }, "resolved_issues", /no issue with a text/],
] as const)
  test(`${set}: ${field} that ${String(says).slice(1, 40)}… is named with its line, and the others load`, async (t) => {
    const path = await fileOf(t, [rows["swe-gym"], { ...rows[set], ...change }, rows["swe-bench-live"]]);
    const leftOut: AlidadeError[] = [];
    const tasks = await loadTasks(path, { onLeftOut: (error) => leftOut.push(error) });
    assert.deepEqual(
      tasks.map(({ labels }) => labels.set),
      ["swe-gym", "swe-bench-live"],
    );
    assert.deepEqual([leftOut.length, leftOut[0]?.code, leftOut[0]?.param], [1, "task_invalid", field]);
    assert.ok(leftOut[0]?.message.startsWith(`${path}:2: ${field}: `), leftOut[0]?.message);
    assert.match(leftOut[0]?.message ?? "", says);
  });

test("a row of no known set is named with its columns, and one that is no object too", async (t) => {
  const leftOut: string[] = [];
  const path = await fileOf(t, [{ prompt: "1 + 1", answer: "2" }, 7, common]);
  const tasks = await loadTasks(path, { onLeftOut: ({ message }) => void leftOut.push(message) });
  assert.equal(tasks.length, 1);
  assert.match(leftOut[0] ?? "", /:1: the columns: prompt, answer are those of no set that is known: SWE-bench Pro \(instance_id, /);
  assert.match(leftOut[1] ?? "", /:2: the row: is no object with columns/);
});

test("one task is loaded by its id or by its set's name for it, whatever is wrong beside it", async (t) => {
  const path = await fileOf(t, [{ ...common, instance_id: "other__one-1", patch: "" }, rows["swe-bench-pro"]]);
  const [task] = await loadTasks(`${path}#${rows["swe-bench-pro"].instance_id}`);
  assert.ok(task);
  assert.equal((await loadTasks(`${path}#${task.task_id}`)).length, 1);
});

test("a table of Parquet has the rows that its JSON has, however its pages are packed", async (t) => {
  const folder = join(import.meta.dirname, "parquet");
  const read = await Promise.all(["snappy", "gzip", "brotli", "zstd"].map((name) => readParquet(join(folder, `${name}.parquet`))));
  for (const table of read) assert.deepEqual(table, read[0]);
  const [first] = read[0] as [Record<string, unknown>];
  assert.deepEqual(
    [first.instance_id, first.created_at, first.number, first.FAIL_TO_PASS, first.install_config, first.hints_text],
    ["owner__name-1", "2024-01-01T00:00:00.000Z", 1, ["a::b", "c"], { test_cmd: ["pytest"], log_parser: "parse_log_pytest" }, null],
  );
  await assert.rejects(readParquet(join(folder, "lz4.parquet")), { code: "task_invalid", message: /unsupported compression codec: LZ4/ });
  const cut = join(dirname(await fileOf(t, [])), "cut.parquet");
  await writeFile(cut, (await readFile(join(folder, "zstd.parquet"))).subarray(0, 3_000));
  await assert.rejects(readParquet(cut), { code: "task_invalid", message: /cut\.parquet: the file: cannot be read as Parquet/ });
  const leftOut: string[] = [];
  await assert.rejects(
    loadTasks(join(folder, "zstd.parquet"), { onLeftOut: ({ message }) => void leftOut.push(message) }).then((tasks) =>
      assert.ok(tasks.length),
    ),
  );
  assert.match(leftOut[1] ?? "", /zstd\.parquet\[1\]: test_patch: /);
});
