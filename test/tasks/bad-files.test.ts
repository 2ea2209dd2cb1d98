/** One file that no task can be made of leaves the tasks beside it as they are, and is named: whatever stands in it, and whatever it is. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, symlink, truncate, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { inlineTask } from "../../tasks/inline-task.ts";
import { loadTaskSets, loadTasks } from "../../tasks/load-tasks.ts";
import { hashedTasks } from "../../tasks/sets/task-set.ts";
import { ScriptedEngine } from "../fakes/engines/scripted-engine.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";
import { cli, jsonOf } from "../fakes/processes/cli.ts";
import { runFile, solve, writeTask } from "../fakes/rollouts/small-task.ts";

const scratch = scratchFolder("bad-files");

type Makes = (file: string) => Promise<unknown>;

const text =
  (content: string): Makes =>
  (file) =>
    writeFile(file, content);
/** Takes no room on the disk. */
const sparse =
  (bytes: number): Makes =>
  (file) =>
    writeFile(file, "a: 1\n").then(() => truncate(file, bytes));
const linkTo =
  (target: string): Makes =>
  (file) =>
    symlink(target, file);
const pipe: Makes = (file) => promisify(execFile)("mkfifo", [file]);
const folder: Makes = (file) => mkdir(file);

const gibibyte = 1024 ** 3;
const head = "task_id: bad\ninstruction: Do it.\n";
const laughs = Array.from({ length: 40 }, (_, at) => `l${at}: &l${at} [${at === 0 ? "1, 1" : `*l${at - 1}, *l${at - 1}`}]`).join("\n");
const manyAliases = `a: &a 1\n${Array.from({ length: 2_000 }, (_, at) => `k${at}: *a`).join("\n")}`;
const deepToml = `metadata = ${"[".repeat(100_000)}${"]".repeat(100_000)}`;

/** What `task.yaml` may be. */
const yaml: [name: string, make: Makes, said: RegExp][] = [
  [
    "an alias that holds itself",
    text(`${head}grader: &g { kind: script, command: ["true"], more: *g }\n`),
    /holds a list or map that holds itself/,
  ],
  ["aliases that copy each other", text(`${head}${laughs}\n`), /its aliases copy too much/],
  ["thousands of aliases", text(`${head}${manyAliases}\n`), /it holds 2000 aliases, and 100 are read/],
  ["a deep list", text(`${head}grader: ${"[".repeat(20_000)}\n`), /it nests too deeply/],
  ["a deep map", text(`${Array.from({ length: 200 }, (_, at) => `${" ".repeat(at)}a:`).join("\n")} 1\n`), /nests deeper than 64 levels/],
  ["a key that stands twice", text(`${head}${head}`), /the key "task_id" stands twice/],
  ["thirty thousand keys", text(Array.from({ length: 30_000 }, (_, at) => `k${at}: 1`).join("\n")), /is no field here/],
  ["bytes that are no text", text("\u0000\u0001{[\ufffd"), /task\.yaml: /],
  ["two megabytes", text("a".repeat(2 * 1024 ** 2)), /has 2097152 bytes: shorten it/],
  ["three gibibytes", sparse(3 * gibibyte), /has 3221225472 bytes: shorten it/],
  ["a device without an end", linkTo("/dev/zero"), /is no file/],
  ["a pipe", pipe, /is no file/],
  ["a file of the kernel without an end", linkTo("/proc/self/pagemap"), /is no file|cannot be read|has more than/],
  ["a folder", folder, /is no file/],
  ["a link to itself", linkTo("task.yaml"), /is no file/],
];

/** The place of a bad file in a folder of Harbor, what stands there, and what is said. */
const harbor: [name: string, path: string, make: Makes, said: RegExp][] = [
  ["a link among the tests", "tests/answer", linkTo("/etc/passwd"), /bad: .*tests\/answer is neither a file nor a folder/],
  ["a pipe among the tests", "tests/pipe", pipe, /tests\/pipe is neither/],
  ["a link beside the solution", "solution/answer", linkTo("../tests/test.sh"), /solution\/answer is neither/],
  ["a link out of the build context", "environment/etc", linkTo("/etc"), /leaves the context/],
  ["deep TOML", "task.toml", text(deepToml), /is not TOML/],
  ["TOML of three gibibytes", "task.toml", sparse(3 * gibibyte), /has 3221225472 bytes/],
  ["an instruction without an end", "instruction.md", linkTo("/dev/zero"), /is no file \(links are not followed\)/],
  ["a Dockerfile of a gibibyte", "environment/Dockerfile", sparse(gibibyte), /Dockerfile has more than/],
  ["tests of a gibibyte", "tests/data", sparse(gibibyte), /holds more than 536870912 bytes/],
  ["a compose file that holds itself", "environment/docker-compose.yaml", text("services: &s { main: {}, db: *s }\n"), /holds itself/],
  ["a deep compose file", "environment/docker-compose.yaml", text(`services: ${"{a: ".repeat(10_000)}`), /it nests too deeply/],
  ["a compose file that is a pipe", "environment/docker-compose.yaml", pipe, /is no file/],
];

const harborFiles = {
  "task.toml": 'schema_version = "1.4"\n',
  "instruction.md": "Do it.\n",
  "environment/Dockerfile": "FROM scratch\nWORKDIR /app\nUSER worker\n",
  "tests/test.sh": "true\n",
};

let sets = 0;

/** A folder of a good task and a bad one. */
async function setOf(good: Record<string, string>, bad: Record<string, string>, path: string, make: Makes): Promise<string> {
  sets += 1;
  const set = join(scratch, `set-${sets}`);
  for (const [name, files] of [
    ["good", good],
    ["bad", bad],
  ] as const)
    for (const [file, content] of Object.entries(files)) {
      if (name === "bad" && file === path) continue;
      await mkdir(dirname(join(set, name, file)), { recursive: true });
      await writeFile(join(set, name, file), content);
    }
  await mkdir(dirname(join(set, "bad", path)), { recursive: true });
  await make(join(set, "bad", path));
  return set;
}

async function loaded(place: string): Promise<{ names: string[]; said: string[] }> {
  const said: string[] = [];
  const onLeftOut = ({ code, message }: { code: string; message: string }) => void said.push(`${code} ${message}`);
  const tasks = await hashedTasks(await loadTasks(place, { onLeftOut }), undefined, { onLeftOut });
  return { names: tasks.map(({ task }) => task.task_id), said };
}

const goodYaml = { "task.yaml": 'task_id: good\ninstruction: Do it.\ngrader: { kind: script, command: ["true"] }\n' };

for (const [name, make, wanted] of yaml)
  test(`${name} in the place of a task.yaml is left out by its name, and the task beside it is loaded`, { timeout: 300_000 }, async () => {
    const { names, said } = await loaded(await setOf(goodYaml, {}, "task.yaml", make));
    assert.deepEqual(names, ["good"]);
    assert.equal(said.length, 1, said.join("\n"));
    assert.match(said[0] ?? "", /^task_invalid .*bad\/task\.yaml: /);
    assert.match(said[0] ?? "", wanted);
  });

for (const [name, path, make, wanted] of harbor)
  test(`${name} in a folder of Harbor's leaves that task out by its name, and the task beside it is loaded`, {
    timeout: 300_000,
  }, async () => {
    const { names, said } = await loaded(await setOf(harborFiles, { ...harborFiles, "solution/solve.sh": "true\n" }, path, make));
    assert.deepEqual([names, said.length], [["good"], 1], said.join("\n"));
    assert.match(said[0] ?? "", /^task_invalid .*bad/);
    assert.match(said[0] ?? "", wanted);
  });

test("a deep row, a row that is none and a deep file leave the others as they are", async () => {
  const row = (task_id: string) => JSON.stringify({ task_id, instruction: "Do it.", grader: { kind: "script", command: ["true"] } });
  const deep = `${"[".repeat(200_000)}${"]".repeat(200_000)}`;
  const rows = [
    row("a"),
    `{"task_id":"deep","instruction":"i","grader":{"kind":"script","command":["true"],"more":${deep}}}`,
    "{",
    row("b"),
  ];
  await writeFile(join(scratch, "rows.jsonl"), rows.join("\n"));
  const one = await loaded(join(scratch, "rows.jsonl"));
  assert.deepEqual(one.names, ["a", "b"]);
  assert.match(one.said.join("\n"), /rows\.jsonl:3: the row: is not JSON.*\n.*rows\.jsonl:2: the whole file: nests deeper than 64 levels/);
  await writeFile(join(scratch, "deep.json"), `{"task_id":${deep}}`);
  await writeFile(join(scratch, "broken.json"), "[{");
  await writeFile(join(scratch, "huge.jsonl"), `${row("c")}\n`);
  await truncate(join(scratch, "huge.jsonl"), gibibyte);
  const said: string[] = [];
  const places = ["rows.jsonl", "deep.json", "broken.json", "huge.jsonl"].map((name) => join(scratch, name));
  const tasks = await loadTaskSets(places, { onLeftOut: ({ message }) => void said.push(message) });
  assert.deepEqual([tasks.map(({ task_id }) => task_id), said.length], [["a", "b"], 5], said.join("\n"));
  for (const name of [
    "deep.json: the whole file: nests",
    "broken.json: the row: is not JSON",
    "huge.jsonl: the file: has 1073741824 bytes",
  ])
    assert.ok(
      said.some((message) => message.includes(name)),
      said.join("\n"),
    );
});

test("an archive with a link in one of its tasks has the others, and a task that is a link is named", async () => {
  const set = await setOf(harborFiles, harborFiles, "tests/answer", linkTo("/etc/passwd"));
  await symlink("good", join(set, "other"));
  await promisify(execFile)("tar", ["-czf", join(scratch, "set.tar.gz"), "-C", set, "."]);
  const { names, said } = await loaded(join(scratch, "set.tar.gz"));
  assert.deepEqual(names, ["good"]);
  assert.match(said.sort().join("\n"), /bad\/tests\/answer: is a symlink.*\n.*set\.tar\.gz: other: is a symlink/);
});

test("a task that a trainer sends is refused for what nests too deeply, in a sentence", async () => {
  let deep: unknown = {};
  for (let level = 0; level < 100_000; level += 1) deep = [deep];
  const given = { task_id: "deep", instruction: "Do it.", grader: { kind: "script", command: ["true"], more: deep } };
  await assert.rejects(inlineTask(given), { code: "task_invalid", message: /^the task: the whole file: nests deeper than 64 levels/ });
});

test("`tasks`, `check` and `run` go on with the good task, and name the bad ones", { timeout: 300_000 }, async () => {
  const set = join(scratch, "verbs");
  await writeTask(set, "good");
  const bad = ["an alias that holds itself", "a deep map", "a pipe"];
  for (const [at, [name, make]] of yaml.entries()) {
    if (!bad.includes(name)) continue;
    await mkdir(join(set, `bad-${at}`));
    await make(join(set, `bad-${at}`, "task.yaml"));
  }
  const validated = await cli(["tasks", "validate", set, "--json"]);
  assert.equal(validated.code, 1, validated.stderr);
  const report = jsonOf<{ valid: number; left_out: string[] }>(validated);
  assert.deepEqual([report.valid, report.left_out.length], [1, bad.length]);
  const listed = await cli(["tasks", "list", set]);
  assert.match(listed.stdout, /1 tasks\n(?:.*\n)*good /);
  const checked = await cli(["check", set, "--times", "1", "--sandbox", "process", "--unsafe-host", "--json"]);
  assert.deepEqual(jsonOf<{ left_out: string[] }>(checked).left_out.length, bad.length, checked.stderr);
  await using engine = await ScriptedEngine.start(solve);
  await writeFile(join(scratch, "run.yaml"), runFile({ engine: engine.url, tasks: [set] }));
  const ran = await cli(["run", "-c", join(scratch, "run.yaml"), "--out", join(scratch, "runs"), "--json"]);
  const { rollouts, left_out } = jsonOf<{ rollouts: { verdict: { reward: number } }[]; left_out: string[] }>(ran);
  assert.deepEqual([rollouts.map(({ verdict }) => verdict?.reward), left_out.length], [[1, 1], bad.length], ran.stderr);
});
