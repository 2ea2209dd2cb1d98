import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import type { Task } from "../../base/schema/task.ts";
import { HarborSpec } from "../../graders/harbor.ts";
import { loadTasks } from "../../tasks/load-tasks.ts";
import type { LoadOptions } from "../../tasks/task-format.ts";
import { terminalBenchFolder as folderOf, terminalBenchFiles as own, type TerminalBenchFiles } from "../fakes/terminal-bench-tasks.ts";

async function taskOf(files: Record<string, string | undefined>, options: LoadOptions = {}): Promise<Task> {
  const some = Object.entries({ ...own, ...files }).flatMap(([name, text]) => (text === undefined ? [] : [[name, text] as const]));
  const [task] = await loadTasks(await folderOf({ one: Object.fromEntries(some) }), options);
  assert.ok(task);
  return task;
}

const withClient = (lines: string): TerminalBenchFiles => ({
  "docker-compose.yaml": `services:\n  client:\n${lines.replaceAll(/^/gm, "    ")}`,
});

const withConfig = (lines: string): TerminalBenchFiles => ({ "task.yaml": `${own["task.yaml"]}${lines}` });
const build = "build: .\n";

test("every field of a task folder has its place", async () => {
  const task = await taskOf({
    ...withConfig("category: files\ntags: [a, b]\nmax_agent_timeout_sec: 900.0\nmax_test_timeout_sec: 180\nparser_name: swebench\n"),
    "docker-compose.yaml": `services:
  client:
    build: { context: image, dockerfile: Other, args: { BASE: scratch } }
    image: \${T_BENCH_TASK_DOCKER_CLIENT_IMAGE_NAME}
    command: tail -f /dev/null
    working_dir: /srv
    environment: ["TEST_DIR=\${T_BENCH_TEST_DIR}", A=1]
    volumes:
      - \${T_BENCH_TASK_LOGS_PATH}:\${T_BENCH_CONTAINER_LOGS_PATH}
      - \${T_BENCH_TASK_LOGS_PATH}/patches:/tmp/patches
    deploy: { resources: { limits: { cpus: "2", memory: 4g } } }
    depends_on: [server]
  server:
    image: \${T_BENCH_TASK_DOCKER_NAME_PREFIX}__server
    build: image
`,
    "image/Other": "FROM scratch\nWORKDIR /app\nUSER worker\n",
    "image/Dockerfile": "FROM scratch\n",
  });
  const { environment, limits } = task;
  assert.deepEqual([task.task_id, task.instruction], ["one", "Write hello into greeting.txt."]);
  assert.deepEqual(task.labels, { difficulty: "easy", category: "files", tags: "a,b", network: "unstated" });
  assert.deepEqual([limits.agent_seconds, limits.grade_seconds, limits.cpus, limits.memory_mb], [900, 180, 2, 4096]);
  assert.deepEqual([environment.build?.dockerfile, environment.build?.args], ["Other", { BASE: "scratch" }]);
  assert.deepEqual([environment.workdir, environment.user, environment.env], ["/srv", "agent", { TEST_DIR: "/tests", A: "1" }]);
  assert.deepEqual(environment.setup?.command.slice(4), ["/logs", "/agent-logs", "/tmp/patches"]);
  assert.deepEqual(Object.keys(environment.services ?? {}), ["server"]);
  assert.deepEqual([environment.network, environment.grading_network], ["none", "none"]);
  const grader = HarborSpec.parse(task.grader);
  assert.deepEqual([grader.printed, grader.user], ["swebench", "root"]);
  assert.deepEqual((await readdir(grader.tests ?? "")).sort(), ["run-tests.sh", "test_outputs.py"]);
  assert.deepEqual(task.gold_script?.command, ["bash", "/oracle/solution.sh"]);
  assert.deepEqual(await readdir(task.gold_script?.files ?? ""), ["solution.sh"]);
});

test("what a task leaves out is Terminal-Bench's default, and tests in the agent's shell are its user's", async () => {
  const { limits, grader } = await taskOf({});
  assert.deepEqual([limits.agent_seconds, limits.grade_seconds, HarborSpec.parse(grader).printed], [360, 60, "pytest"]);
  const image = { Dockerfile: "FROM scratch\nWORKDIR /app\nUSER worker\n" };
  const same = await taskOf({ ...image, ...withConfig("run_tests_in_same_shell: true\n") });
  assert.deepEqual([HarborSpec.parse(same.grader).user, HarborSpec.parse((await taskOf(image)).grader).user], ["agent", "root"]);
});

test("an instruction may stand among descriptions, and a script of tests among the tests wins", async () => {
  const described = "descriptions:\n  - { key: hard, description: No. }\n  - { key: base, description: Do it. }\n";
  const task = await taskOf({ "task.yaml": described, "tests/run-tests.sh": "true\n" });
  assert.equal(task.instruction, "Do it.");
  assert.equal(await readFile(join(String(task.grader.tests), "run-tests.sh"), "utf8"), "true\n");
});

test("typed commands are a script, and keys for a program are none", async () => {
  const typed = { "solution.sh": undefined, "solution.yaml": "- command: cd /app\n  block: true\n- command: echo hello > greeting.txt\n" };
  const { gold_script } = await taskOf(typed);
  assert.equal(await readFile(join(gold_script?.files ?? "", "solution.sh"), "utf8"), "cd /app\necho hello > greeting.txt\n");
  const keys = { ...typed, "solution.yaml": "- command: vim greeting.txt\n- command: ihello\n  append_enter: false\n" };
  assert.equal((await taskOf(keys)).gold_script, undefined);
});

const mount = "volumes: [./:/app]\n";
for (const [title, files, says] of [
  ["another parser", withConfig("parser_name: long_cli\n"), /task\.yaml: parser_name: is "long_cli": give one of pytest, swebench/],
  ["a time that is none", withConfig("max_test_timeout_sec: soon\n"), /max_test_timeout_sec: is "soon"/],
  ["no instruction", { "task.yaml": "difficulty: easy\n" }, /instruction: is missing, and no entry of descriptions has the key base/],
  ["no script", { "run-tests.sh": undefined }, /run-tests\.sh: the file: is no file/],
  ["no compose file", { "docker-compose.yaml": undefined }, /docker-compose\.yaml: the file: is no file/],
  ["no image", withClient("tty: true\n"), /services\.client\.build: is missing, and so is an image/],
  ["folders of the host", withClient(`${build}${mount}`), /services\.client\.volumes\.0: is "\.\/:\/app": files of the host/],
  [
    "a program of its own",
    withClient(`${build}command: [/start.sh]\n`),
    /services\.client\.command: is .*start programs in the image's ENTRYPOINT/,
  ],
  ["rights", withClient(`${build}privileged: true\n`), /services\.client\.privileged: is true: services have no capabilities/],
  ["an image outside", withClient("build: ..\n"), /services\.client\.build\.context: \.\. leaves the task's own folder/],
  ["a Dockerfile outside", withClient("build: { context: ., dockerfile: ../../Dockerfile }\n"), /services\.client\.build: /],
  [
    "tests of the agent's shell that no script shows to pass elsewhere",
    { ...withConfig("run_tests_in_same_shell: true\n"), "solution.sh": undefined, "solution.yaml": "- command: export A=1\n" },
    /run_tests_in_same_shell: is true, and no solution\.sh shows/,
  ],
] as const)
  test(`refuses ${title}, with its field`, async () => {
    await assert.rejects(taskOf(files), (error: Error) => says.test(error.message) || assert.fail(error.message));
  });

test("one broken task is left out, and fields that Terminal-Bench ignores and the missing network are said once", async () => {
  const broken = { ...own, ...withClient(`${build}${mount}`) };
  const folder = await folderOf({ one: { ...own, ...withConfig("author: me\n") }, two: { ...own, ...withConfig("author: me\n") }, broken });
  const [leftOut, said] = [[] as string[], [] as string[]];
  const options = { onLeftOut: (error: Error) => void leftOut.push(error.message), progress: (line: string) => void said.push(line) };
  const tasks = await loadTasks(folder, options);
  assert.deepEqual([tasks.map(({ task_id }) => task_id), leftOut.length], [["one", "two"], 1]);
  assert.match(
    said.join("\n"),
    /^\S+: author: no field of Terminal-Bench's, and ignored as there\n\S+: 2 tasks reach the whole internet in Terminal-Bench\./,
  );
  const [open] = await loadTasks(`${folder}#one`, { ...options, allowPublic: true, verifierNetwork: { allow: ["pypi.org"] } });
  assert.deepEqual([open?.environment.network, open?.environment.grading_network], ["public", { allow: ["pypi.org"] }]);
});
