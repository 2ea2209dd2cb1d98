import assert from "node:assert/strict";
import { mkdir, mkdtemp, realpath, rm, symlink, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { stringify } from "yaml";
import { AlidadeError } from "../../base/errors.ts";
import { graderSpec } from "../../graders/grade.ts";
import { TestsSpec } from "../../graders/tests.ts";
import { localProcess } from "../../sandboxes/process.ts";
import { inlineTask } from "../../tasks/inline-task.ts";
import { loadTaskSets, loadTasks } from "../../tasks/load-tasks.ts";
import { native } from "../../tasks/native.ts";
import { contentHash } from "../../tasks/sets/task-set.ts";

async function folderOf(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "alidade-native-"));
  t.after(() => rm(folder, { recursive: true }));
  for (const name of ["files", "tests"]) await mkdir(join(folder, name));
  return folder;
}

const good = {
  task_id: "fix-it",
  instruction: "Fix it.",
  environment: { files: "files" },
  grader: { kind: "tests", command: ["node", "{runner}"], parser: "node-test", tests: "tests", fail_to_pass: ["a"], pass_to_pass: [] },
};

async function loadFailure(path: string): Promise<AlidadeError> {
  const error = await loadTasks(path).then(
    () => null,
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof AlidadeError, String(error));
  assert.equal(error.code, "task_invalid");
  return error;
}

test("the demo's folder gives its tasks, ready to run", async () => {
  const tasks = await loadTasks("examples/demo/tasks");
  assert.deepEqual(tasks.map((task) => task.task_id).sort(), ["merge-ranges", "parse-duration"]);
  for (const { environment } of tasks) {
    assert.ok(environment.files?.startsWith("/"));
    assert.deepEqual(Object.keys(environment.mounts), ["/opt/alidade/node"]);
    assert.match(environment.env.PATH ?? "", /^\/opt\/alidade\/node\/bin:/);
  }
});

test("a task is read from YAML and from JSON, with host paths made absolute", async (t) => {
  const folder = await folderOf(t);
  await writeFile(join(folder, "task.yaml"), stringify(good));
  await writeFile(join(folder, "one.json"), JSON.stringify(good));
  for (const path of [folder, join(folder, "task.yaml"), join(folder, "one.json")]) {
    const [task] = await loadTasks(path);
    assert.ok(task);
    assert.ok(task.environment.files?.endsWith("/files"));
    assert.ok(TestsSpec.parse(task.grader).tests?.endsWith("/tests"));
  }
});

test("a file with a task a line is known by its first line, however long the file is", async (t) => {
  const file = join(await folderOf(t), "many.jsonl");
  await writeFile(file, `\n${JSON.stringify(good)}\n`);
  // Longer than what can be read at once.
  await truncate(file, 3 * 1024 ** 3);
  assert.equal(await native.matches(file), true);
});

/** A task of one step: what its agent and its verifier get. */
const stepped = (step: object, verifier: object = {}) => ({
  steps: [{ name: "a", instruction: "i", agent_seconds: 1, ...step }],
  grader: {
    kind: "steps",
    combine: "mean",
    steps: [{ name: "a", grade_seconds: 1, grader: { kind: "harbor", tests: "tests", ...verifier } }],
  },
});

for (const [title, change, field] of [
  ["a missing instruction", { instruction: undefined }, "instruction"],
  ["an unknown key", { enviroment: {} }, "enviroment"],
  ["a wrong kind of grader", { grader: { kind: "guess" } }, "grader.kind"],
  ["a report without a parser", { grader: { ...good.grader, parser: undefined } }, "grader.parser"],
  ["a range of rewards that is upside down", { reward_range: [1, 0] }, "reward_range"],
  ["a negative limit", { limits: { memory_mb: -1 } }, "limits.memory_mb"],
  ["an id with a slash", { task_id: "../x" }, "task_id"],
  ["files outside the folder", { environment: { files: "../.." } }, "environment.files"],
  ["an absolute folder", { environment: { files: "/etc" } }, "environment.files"],
  ["a folder that is not there", { environment: { files: "nowhere" } }, "environment.files"],
  ["a link out of the folder", { environment: { files: "way-out" } }, "environment.files"],
  ["tests outside the folder", { grader: { ...good.grader, tests: "../.." } }, "grader.tests"],
  ["gold files outside the folder", { gold_files: "../.." }, "gold_files"],
  ["a gold script outside the folder", { gold_script: { files: "/etc", command: ["true"] } }, "gold_script.files"],
  ["a step's files outside the folder", stepped({ files: "/etc" }), "steps.0.files"],
  ["a step's gold script outside the folder", stepped({ gold_script: { files: "../..", command: ["true"] } }), "steps.0.gold_script.files"],
  ["a step's tests outside the folder", stepped({}, { tests: "/etc" }), "grader.steps.0.grader.tests"],
  ["a step that is not graded", stepped({ name: "b" }), "grader.steps"],
  ["a grader of steps without steps", { grader: stepped({}).grader }, "grader.steps"],
  ["a mount of a host path", { environment: { mounts: { "/host": "/" } } }, "environment.mounts./host"],
  ["a mount through dots", { environment: { mounts: { "/host": "files/../../.." } } }, "environment.mounts./host"],
  ["Node at another place", { environment: { mounts: { "/usr": "alidade:node" } } }, "environment.mounts./usr"],
] as const) {
  test(`${title} is refused by file and field`, async (t) => {
    const folder = await folderOf(t);
    await symlink("/etc", join(folder, "way-out"));
    await writeFile(join(folder, "task.yaml"), stringify({ ...good, ...change }));
    const error = await loadFailure(folder);
    assert.equal(error.param, field);
    assert.ok(error.message.includes(join(folder, "task.yaml")) && error.message.includes(field), error.message);
  });
}

test("a file that is no YAML or no JSON says so", async (t) => {
  const folder = await folderOf(t);
  await writeFile(join(folder, "task.yaml"), "task_id: [\n");
  assert.match((await loadFailure(folder)).message, /is not YAML/);
  await writeFile(join(folder, "x.json"), "{");
  assert.match((await loadFailure(join(folder, "x.json"))).message, /is not JSON/);
});

test("a folder with a # in its name is a path, with and without a task's id behind it", async (t) => {
  const folder = join(await folderOf(t), "c#");
  for (const inner of ["files", "tests"]) await mkdir(join(folder, inner), { recursive: true });
  await writeFile(join(folder, "task.yaml"), stringify(good));
  for (const path of [folder, `${folder}#fix-it`])
    assert.deepEqual(
      (await loadTasks(path)).map((task) => task.task_id),
      ["fix-it"],
    );
});

test("an unknown format, a missing path, an unknown id and a task_id that occurs twice are named", async (t) => {
  const folder = await folderOf(t);
  await writeFile(join(folder, "tasks.toml"), "");
  assert.match((await loadFailure(join(folder, "tasks.toml"))).message, /no task format.*native.*swe-row/);
  assert.match((await loadFailure(folder)).message, /no task format/);
  assert.match((await loadFailure(join(folder, "missing"))).message, /there is no file or folder/);
  assert.match(
    (await loadFailure("examples/demo/tasks#merge-range")).message,
    /holds no task merge-range: it holds merge-ranges, parse-duration$/,
  );
  for (const name of ["a", "b"]) {
    for (const inner of ["", "files", "tests"]) await mkdir(join(folder, name, inner), { recursive: true });
    await writeFile(join(folder, name, "task.yaml"), stringify(good));
  }
  assert.match((await loadFailure(folder)).message, /two tasks with the task_id fix-it/);
});

test("one task of a folder is chosen by its id", async () => {
  const tasks = await loadTasks("examples/demo/tasks#merge-ranges");
  assert.deepEqual(
    tasks.map((task) => task.task_id),
    ["merge-ranges"],
  );
});

test("of a folder of tasks the bad ones are left out and named, and the others are loaded", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "alidade-native-"));
  t.after(() => rm(folder, { recursive: true }));
  const answer = { task_id: "a", instruction: "i", grader: { kind: "script", command: ["true"] } };
  const tasks = {
    good: answer,
    unknown: { ...answer, task_id: "b", enviroment: {} },
    missing: { ...answer, task_id: "c", environment: { files: "files" } },
    twin: answer,
  };
  for (const [name, task] of Object.entries(tasks)) {
    await mkdir(join(folder, name));
    await writeFile(join(folder, name, "task.yaml"), stringify(task));
  }
  await assert.rejects(loadTasks(folder), { code: "task_invalid" });
  const named: string[] = [];
  const onLeftOut = ({ param, message }: AlidadeError): void => void named.push(`${param}: ${message}`);
  const loaded = await loadTasks(folder, { onLeftOut });
  assert.deepEqual(
    loaded.map(({ task_id }) => task_id),
    ["a"],
  );
  assert.deepEqual(named.length, 3);
  for (const said of [
    /^enviroment: .*unknown\/task\.yaml/,
    /^environment\.files: .*missing\/task\.yaml.*there is no folder files/,
    /two tasks.* a$/,
  ])
    assert.ok(
      named.some((one) => said.test(one)),
      `${said} in ${named.join("\n")}`,
    );
  await assert.rejects(loadTaskSets([join(folder, "missing")], { onLeftOut }), { code: "task_invalid", param: "environment.files" });
});

test("a service's build lies beside the task, an inline task has none, and a sandbox of processes has no services", async (t) => {
  const folder = await folderOf(t);
  const path = join(folder, "task.yaml");
  const asked = (context: string) => ({ ...good, environment: { services: { db: { build: { context } } } } });
  await writeFile(path, stringify(asked("files")));
  const [task] = await loadTasks(path);
  assert.equal(task?.environment.services?.db?.build?.context, await realpath(join(folder, "files")));
  await writeFile(path, stringify(asked("..")));
  assert.equal((await loadFailure(path)).param, "environment.services.db.build.context");
  await assert.rejects(inlineTask(asked("files")), { code: "task_invalid", param: "environment.services.db.build.context" });
  const preparing = localProcess.prepare([task.environment], { signal: t.signal });
  await assert.rejects(preparing, {
    code: "task_invalid",
    param: "environment.services",
    message: /services is db, and sandboxes in processes/,
  });
});

test("a service apart has its files beside the task and exposes each port once; no other service exposes any", async (t) => {
  const folder = await folderOf(t);
  const path = join(folder, "task.yaml");
  const asked = (...services: object[]) => ({
    ...good,
    environment: { services: Object.fromEntries(services.map((one, at) => [`s${at}`, { image: "i", ...one }])) },
  });
  const refusal = async (...services: object[]) => {
    await writeFile(path, stringify(asked(...services)));
    const { param, message } = await loadFailure(path);
    return `${param}: ${message}`;
  };
  const apart = { network: "apart", files: "files", expose: [8080] };
  await writeFile(path, stringify(asked(apart)));
  const [first] = await loadTasks(path);
  assert.ok(first);
  assert.equal(first.environment.services?.s0?.files, await realpath(join(folder, "files")));
  const before = await contentHash(first);
  await writeFile(join(folder, "files", "more"), "more");
  assert.notEqual(await contentHash(first), before, "its files are part of the task");
  assert.match(await refusal({ ...apart, files: ".." }), /^environment\.services\.s0\.files: /);
  assert.match(await refusal({ expose: [80] }), /s0\.expose: .*say network: apart/);
  assert.match(await refusal(apart, apart), /s1\.expose: .*the port 8080 is taken/);
  assert.match(await refusal({ ...apart, expose: [4000] }), /the port 4000 is taken/);
});

const desk = { image: "i", network: "apart", state: ["/srv/data"] };
const deskTools = [{ name: "front", service: "desk", port: 8000 }];
const stateOf = (check: object) => ({ kind: "state", checks: [check] });
const gradedStep = (grader: object, more: object = {}) => ({
  steps: [{ name: "a", instruction: "-", agent_seconds: 1 }],
  grader: { kind: "steps", combine: "mean", steps: [{ name: "a", grade_seconds: 1, grader, ...more }] },
});

for (const [what, change, said] of [
  [
    "a check of a service that is not there",
    { grader: stateOf({ service: "shop", http: { port: 1, get: "/" }, exists: true }) },
    /grader\.checks\.0\.service: is shop: name one of desk/,
  ],
  [
    "a check of a file that is not in the state",
    { grader: stateOf({ service: "desk", unchanged: { file: "/etc/app.db" } }) },
    /grader\.checks\.0\.service: is desk, whose state has no \/etc\/app\.db/,
  ],
  [
    "changes of a service that is not there, in a part",
    {
      grader: {
        kind: "composite",
        combine: "all",
        parts: [{ name: "p", grader: { kind: "state", only: ["a", { service: "shop", files: [] }] } }],
      },
    },
    /grader\.parts\.0\.grader\.only\.1\.service: is shop: name one of desk/,
  ],
  [
    "a run at a server that is not there",
    { grader: { kind: "trajectory", ran: [{ tool: "find", server: "shop" }] } },
    /grader\.ran\.0\.server: is shop: name one of front/,
  ],
  [
    "a server of tools in a service that is not there",
    { environment: { services: { desk }, tools: [{ name: "front", service: "shop", port: 1 }] } },
    /environment\.tools\.0\.service: is no service: there is desk/,
  ],
  [
    "a known call at a server that is not there",
    { gold_calls: [{ server: "shop", tool: "find" }] },
    /gold_calls\.0\.server: is shop: name one of front/,
  ],
  [
    "a bad call at a server that is not there",
    { bad_calls: { other: [{ server: "shop", tool: "find" }] } },
    /bad_calls\.other\.0\.server: is shop: name one of front/,
  ],
  [
    "a service for the grader that is not there",
    { environment: { services: { desk }, tools: deskTools, grading_services: ["shop"] } },
    /environment\.grading_services\.0: is no service: there is desk/,
  ],
  [
    "a service for the grader without one that it depends on",
    { environment: { services: { desk: { ...desk, depends_on: { db: "ready" } }, db: { image: "i" } }, grading_services: ["desk"] } },
    /environment\.grading_services\.0: is desk, which depends on db: name that one too/,
  ],
  [
    "a step's check of a service that is not there",
    gradedStep(stateOf({ service: "shop", http: { port: 1, get: "/" }, exists: true })),
    /grader\.steps\.0\.grader\.checks\.0\.service: is shop: name one of desk/,
  ],
  [
    "a step's grader that reads the conversation",
    gradedStep({ kind: "trajectory", ran: [{ tool: "find" }] }),
    /grader\.steps\.0\.grader\.kind: .*harbor.*state.*composite/,
  ],
  [
    "a part of a step's grader that reads the conversation",
    gradedStep({
      kind: "composite",
      combine: "all",
      parts: [
        { name: "p", grader: stateOf({ file: "a", exists: true }) },
        { name: "q", grader: { kind: "answer", equals: "a" } },
      ],
    }),
    /grader\.steps\.0\.grader\.parts\.1\.grader\.kind: is answer: of a step give one of harbor, state, composite/,
  ],
  [
    "a least value of a reward that a step's grader does not give",
    gradedStep(stateOf({ file: "a", exists: true }), { min_reward: { quality: 1 } }),
    /grader\.steps\.0\.min_reward\.quality: is of no reward: a grader of kind state gives `reward`/,
  ],
] as const)
  test(`${what} is refused by field and value when the task is loaded`, async () => {
    const environment = { services: { desk }, tools: deskTools };
    const one = { task_id: "t", instruction: "-", environment, grader: stateOf({ file: "a", exists: true }), ...change };
    const error = await inlineTask(one).then(
      () => null,
      (reason: unknown) => reason,
    );
    assert.ok(error instanceof AlidadeError);
    assert.deepEqual([error.code, said.test(error.message)], ["task_invalid", true], error.message);
  });

test("a grader's sandbox has the services of the sandbox's own network, or those that the task names for it", async () => {
  const services = { desk, db: { image: "i" } };
  const specOf = async (more: object) => {
    const environment = { services, ...more };
    const task = await inlineTask({ task_id: "t", instruction: "-", environment, grader: { kind: "script", command: ["true"] } });
    return Object.keys(graderSpec(task, { run_id: "r", owner: "o" }).services ?? {});
  };
  assert.deepEqual(await specOf({}), ["db"]);
  assert.deepEqual(await specOf({ grading_services: ["desk"] }), ["desk"]);
  assert.deepEqual(await specOf({ grading_services: [] }), []);
});

test("tasks of a .jsonl file or of a list in .json are named by file and line, also for what they name beside the file", async (t) => {
  const folder = await folderOf(t);
  const row = (task_id: string, change: object = {}) => ({ ...good, task_id, ...change });
  const rows = [
    row("a"),
    row("b", { instruction: 3 }),
    row("c", { environment: { files: "../x" } }),
    row("d", { grader: { kind: "test" } }),
  ];
  const [lines, list] = [join(folder, "rows.jsonl"), join(folder, "rows.json")];
  await writeFile(lines, rows.map((one) => `${JSON.stringify(one)}\n`).join(""));
  await writeFile(list, JSON.stringify(rows));
  for (const [path, places] of [
    [lines, [`${lines}:2`, `${lines}:3`, `${lines}:4`]],
    [list, [`${list}[1]`, `${list}[2]`, `${list}[3]`]],
  ] as const) {
    const said: AlidadeError[] = [];
    const tasks = await loadTasks(path, { onLeftOut: (error) => said.push(error) });
    assert.deepEqual([tasks.map(({ task_id }) => task_id), tasks[0]?.environment.files], [["a"], join(await realpath(folder), "files")]);
    const found = said.map(({ message, param }) => [message.slice(0, message.indexOf(": ")), param]).sort();
    assert.deepEqual(
      found,
      places.map((place, at) => [place, ["instruction", "environment.files", "grader.kind"][at]]),
    );
  }
  assert.equal((await loadTasks(`${lines}#a`)).length, 1);
  assert.match((await loadFailure(`${lines}#e`)).message, /holds no task e: it holds a, b, c, d$/);
});

test("of many tasks the nearest names are said to one that asks for another", async (t) => {
  const folder = await folderOf(t);
  const path = join(folder, "rows.jsonl");
  const names = Array.from({ length: 40 }, (_, at) => `task-${at}`);
  await writeFile(path, names.map((task_id) => JSON.stringify({ ...good, task_id })).join("\n"));
  assert.match(
    (await loadFailure(`${path}#tsak-37`)).message,
    /no task tsak-37: it holds 40 others, such as task-37, (?:task-\d+, ){3}task-\d+$/,
  );
});

test("a task of our own form says that its processes are kept, and nothing but yes or no", async (t) => {
  const file = join(await folderOf(t), "task.yaml");
  await writeFile(file, stringify({ ...good, keep_processes: true }));
  assert.equal((await loadTasks(file))[0]?.keep_processes, true);
  await writeFile(file, stringify({ ...good, keep_processes: "always" }));
  assert.match((await loadFailure(file)).message, /keep_processes/);
});
