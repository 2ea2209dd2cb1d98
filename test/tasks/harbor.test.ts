import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { chmod, mkdtemp, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { promisify } from "node:util";
import type { AlidadeError } from "../../base/errors.ts";
import type { Task } from "../../base/schema/task.ts";
import { HarborSpec } from "../../graders/harbor.ts";
import { stepsOfGrader } from "../../graders/steps.ts";
import { loadTasks } from "../../tasks/load-tasks.ts";
import { taskSetOf } from "../../tasks/sets/task-set.ts";
import type { LoadOptions } from "../../tasks/task-format.ts";
import { type HarborFiles as Files, harborFolder } from "../fakes/harbor-tasks.ts";
import { need } from "../needs.ts";

const own: Files = {
  "task.toml": 'schema_version = "1.4"\n',
  "instruction.md": "Do it.\n",
  "environment/Dockerfile": "FROM scratch\nWORKDIR /app\nUSER worker\n",
  "tests/test.sh": "echo 1 > /logs/verifier/reward.txt\n",
  "solution/solve.sh": "true\n",
};

async function taskOf(files: Files, options: LoadOptions = {}): Promise<Task> {
  const [task] = await loadTasks(await harborFolder({ one: { ...own, ...files } }), options);
  assert.ok(task);
  return task;
}

const withConfig = (toml: string): Files => ({ "task.toml": toml });

test("which of several rewards counts is the task's word, else the operator's", async () => {
  const ruleOf = async (toml: string, options: LoadOptions = {}) =>
    HarborSpec.parse((await taskOf(withConfig(toml), options)).grader).reward;
  assert.equal(await ruleOf(""), null);
  assert.deepEqual(await ruleOf("", { harborReward: { key: "quality" } }), { key: "quality" });
  assert.equal(await ruleOf('[metadata.alidade]\nreward = "min"\n', { harborReward: "mean" }), "min");
  assert.deepEqual(await ruleOf("[metadata.alidade]\nreward = { weights = { a = 2, b = 1 } }\n"), { weights: { a: 2, b: 1 } });
  await assert.rejects(ruleOf('[metadata.alidade]\nreward = "best"\n'), /metadata\.alidade\.reward: is "best"/);
});

const full = `schema_version = "1.3"
source = "a-set"
artifacts = ["/srv/out", { source = "logs/app.log", exclude = ["*.tmp"] }]
[task]
name = "alidade/full"
version = "2"
keywords = ["a", "b"]
[metadata]
difficulty = "easy"
[metadata.alidade]
reward_range = [-1, 1]
[agent]
timeout_sec = 60.0
user = "worker"
network_mode = "allowlist"
allowed_hosts = ["PyPI.org", "*.pythonhosted.org"]
[verifier]
timeout_sec = 30
env = { SLUG = "\${SLUG_CASES:-4}" }
[[verifier.collect]]
command = "dump > /srv/out/db"
[solution]
env = { HINT = "1" }
[environment]
cpus = 2
memory = "1G"
storage_mb = 4096
network_mode = "no-network"
workdir = "/srv"
env = { FLAVOUR = "\${FLAVOUR}" }
[environment.healthcheck]
command = "true"
interval_sec = 1.5
`;

test("every field of a task folder has its place", async () => {
  const task = await taskOf(withConfig(full), { env: { FLAVOUR: "plain", SLUG_CASES: "" } });
  const { environment, limits } = task;
  assert.deepEqual([task.task_id, task.instruction, task.data_source], ["alidade__full", "Do it.\n", "a-set"]);
  assert.deepEqual(task.labels, { difficulty: "easy", version: "2", keywords: "a,b" });
  assert.deepEqual([limits.agent_seconds, limits.grade_seconds, limits.cpus, limits.memory_mb, limits.disk_mb], [60, 30, 2, 1024, 4096]);
  assert.match(environment.build?.context ?? "", /\/one\/environment$/);
  assert.deepEqual(
    [environment.workdir, environment.user, environment.writable, environment.env],
    ["/srv", "agent", "root", { FLAVOUR: "plain" }],
  );
  assert.deepEqual(environment.network, { allow: ["pypi.org", "*.pythonhosted.org"] });
  assert.equal(environment.grading_network, "none");
  assert.deepEqual(environment.healthcheck, {
    command: "true",
    interval_seconds: 1.5,
    timeout_seconds: 30,
    retries: 3,
    start_period_seconds: 0,
  });
  assert.match(task.gold_script?.files ?? "", /\/one\/solution$/);
  assert.equal(task.gold_script?.env.HINT, "1");
  const grader = HarborSpec.parse(task.grader);
  assert.match(grader.tests ?? "", /\/one\/tests$/);
  assert.deepEqual([grader.env, task.reward_range, grader.verifier], [{ SLUG: "" }, [-1, 1], null]);
  assert.deepEqual(grader.artifacts, [
    { source: "/logs/artifacts", exclude: [] },
    { source: "/srv/out", exclude: [] },
    { source: "/srv/logs/app.log", exclude: ["*.tmp"] },
  ]);
  assert.deepEqual(grader.collect, [{ command: "dump > /srv/out/db", timeout_seconds: 60, user: null }]);
});

test("what a task leaves out is Harbor's default, or the image's word", async () => {
  const task = await taskOf({ "environment/Dockerfile": "FROM scratch AS base\nWORKDIR /srv\nFROM base\nARG PLACE=app\nWORKDIR $PLACE\n" });
  assert.deepEqual([task.task_id, task.environment.workdir, task.environment.user], ["one", "/srv/app", "root"]);
  assert.deepEqual([task.limits.agent_seconds, task.limits.grade_seconds], [3600, 600]);
  assert.equal((await taskOf({})).environment.user, "agent", "the USER of the Dockerfile");
});

test("a verifier of its own has the image of tests/Dockerfile, or the task's, and its own limits", async () => {
  const toml = '[verifier]\nenvironment_mode = "separate"\n[verifier.environment]\nmemory_mb = 256\n';
  const files = { ...withConfig(toml), "tests/Dockerfile": "FROM scratch\nWORKDIR /check\nUSER root\n" };
  const grader = HarborSpec.parse((await taskOf(files)).grader);
  assert.match(grader.verifier?.environment.build?.context ?? "", /\/one\/tests$/);
  assert.deepEqual([grader.tests, grader.verifier?.environment.workdir, grader.verifier?.limits], [null, "/check", { memory_mb: 256 }]);
  const shared = HarborSpec.parse((await taskOf(withConfig('[verifier]\nenvironment_mode = "separate"\n'))).grader);
  assert.match(shared.verifier?.environment.build?.context ?? "", /\/one\/environment$/);
  assert.match(shared.tests ?? "", /\/one\/tests$/);
});

test("of a named image with a Dockerfile beside it the Dockerfile is built where images are built, and the name counts elsewhere", async () => {
  const toml = `[environment]
docker_image = "acme/task:1"
[verifier]
environment_mode = "separate"
[verifier.environment]
docker_image = "acme/tests:1"
`;
  const files = { ...withConfig(toml), "tests/Dockerfile": "FROM scratch\nWORKDIR /check\nUSER root\n" };
  const sources = async (options: LoadOptions) => {
    const { environment, grader } = await taskOf(files, options);
    const { verifier } = HarborSpec.parse(grader);
    return [environment, verifier?.environment].map((one) => one?.image ?? one?.build?.context.replace(/.*\/one\//, ""));
  };
  assert.deepEqual(await sources({ images: "build" }), ["environment", "tests"]);
  assert.deepEqual(await sources({ static: true }), ["acme/task:1", "acme/tests:1"]);
  const alone = await harborFolder({
    one: { ...withConfig('[environment]\ndocker_image = "acme/task:1"\n'), "instruction.md": "Do it.\n", "tests/test.sh": "true\n" },
  });
  const [pulled] = await loadTasks(alone, { images: "build", static: true });
  assert.equal(pulled?.environment.image, "acme/task:1", "there is nothing to build it from");
});

const stepped: Files = {
  ...withConfig(`multi_step_reward_strategy = "final"
artifacts = ["/a"]
[agent]
timeout_sec = 9
[verifier]
env = { A = "1", B = "1" }
[[verifier.collect]]
command = "one"
[[steps]]
name = "first"
min_reward = 0.5
[steps.agent]
timeout_sec = 5
[steps.verifier]
timeout_sec = 7
env = { B = "2" }
[[steps.verifier.collect]]
command = "two"
[[steps]]
name = "second"
min_reward = { quality = 0.25 }
artifacts = ["b"]
[steps.healthcheck]
command = "true"
`),
  "steps/first/instruction.md": "<!-- harbor-canary GUID 1 -->\nBegin.\n",
  "steps/first/workdir/setup.sh": "true\n",
  "steps/first/workdir/data": "1\n",
  "steps/second/instruction.md": "Go on.\n",
  "steps/second/tests/test.sh": "echo 0 > /logs/verifier/reward.txt\n",
  "steps/second/solution/solve.sh": "false\n",
};

test("steps have what their agents get, and verifiers of their own above the task's", async () => {
  const task = await taskOf(stepped);
  const [first, second] = task.steps ?? [];
  assert.deepEqual([task.instruction, task.limits.agent_seconds, task.limits.grade_seconds], ["Begin.\n", 14, 607]);
  assert.deepEqual([first?.instruction, first?.agent_seconds, first?.healthcheck, second?.agent_seconds], ["Begin.\n", 5, null, 9]);
  assert.match(first?.files ?? "", /\/one\/steps\/first\/workdir$/);
  assert.deepEqual([first?.setup, second?.files], [["sh", "-c", "bash ./setup.sh"], null]);
  assert.deepEqual(
    [first, second].map((step) => step?.gold_script?.files.replace(/.*\/one\//, "")),
    ["solution", "steps/second/solution"],
  );
  const spec = stepsOfGrader(task);
  assert.deepEqual([spec.combine, spec.steps.map(({ min_reward }) => min_reward)], ["final", [{ reward: 0.5 }, { quality: 0.25 }]]);
  const [one, two] = spec.steps.map(({ grader }) => HarborSpec.parse(grader));
  assert.deepEqual(
    [one?.env, two?.env],
    [
      { A: "1", B: "2" },
      { A: "1", B: "1" },
    ],
  );
  assert.deepEqual(
    [one?.tests, one?.step_tests, two?.tests, two?.step_tests].map((path) => path?.replace(/.*\/one\//, "") ?? null),
    ["tests", null, "tests", "steps/second/tests"],
  );
  assert.deepEqual(
    [one?.collect.map(({ command }) => command), two?.artifacts.map(({ source }) => source)],
    [
      ["one", "two"],
      ["/logs/artifacts", "/a", "/app/b"],
    ],
  );
});

test("the hash of a set depends on what stands in its steps", async () => {
  const hashAt = async (change: Files = {}) => {
    const folder = await harborFolder({ one: { ...own, ...stepped, ...change } });
    return (await taskSetOf(folder, await loadTasks(folder))).hash;
  };
  const first = await hashAt();
  assert.equal(await hashAt(), first);
  for (const path of ["steps/first/workdir/data", "steps/second/tests/test.sh", "steps/second/solution/solve.sh"])
    assert.notEqual(await hashAt({ [path]: "changed" }), first, path);
});

test("a task that names no network mode reaches nothing, which is said, and with the operator's word what it reaches in Harbor", async () => {
  const said: string[] = [];
  const closed = await taskOf({}, { progress: (line) => void said.push(line) });
  assert.deepEqual([closed.environment.network, closed.environment.grading_network], ["none", "none"]);
  assert.match(said.join("\n"), /1 of 1 tasks name no network_mode.*--allow-public-network.*--verifier-network/);
  const open = await taskOf({}, { allowPublic: true, verifierNetwork: "public" });
  assert.deepEqual([open.environment.network, open.environment.grading_network], ["public", "public"]);
});

test("the tests have a network of their own: the verifier's word, else the environment's mode, else the operator's", async () => {
  const networks = async (config: string, options: LoadOptions = {}) => {
    const { environment } = await taskOf(withConfig(config), options);
    return [environment.network, environment.grading_network];
  };
  const some = { allow: ["deb.debian.org"] };
  assert.deepEqual(await networks("", { allowPublic: true }), ["public", "none"]);
  assert.deepEqual(await networks("", { verifierNetwork: some }), ["none", some]);
  assert.deepEqual(await networks("[environment]\nallow_internet = true\n"), ["public", "none"]);
  assert.deepEqual(await networks("[environment]\nallow_internet = true\n", { verifierNetwork: some }), ["public", some]);
  const given = { allowPublic: true, verifierNetwork: some };
  assert.deepEqual(await networks("[environment]\nallow_internet = false\n", given), ["none", "none"]);
  assert.deepEqual(await networks('[environment]\nnetwork_mode = "public"\n', { verifierNetwork: some }), ["public", "public"]);
  assert.deepEqual(await networks('[verifier]\nnetwork_mode = "no-network"\n', given), ["public", "none"]);
  const own = '[verifier]\nnetwork_mode = "allowlist"\nallowed_hosts = ["pypi.org"]\n';
  assert.deepEqual(await networks(own, given), ["public", { allow: ["pypi.org"] }]);
});

test("lines that mark a data set are not shown to the agent", async () => {
  const text = "<!-- harbor-canary GUID 1 -->\n# a CANARY line\n\nDo it.\n# canary\n";
  assert.equal((await taskOf({ "instruction.md": text })).instruction, "Do it.\n# canary\n");
});

test("skills are those of the folder that the task names, and a path without a slash begins in the workdir", async () => {
  const skillsOf = async (line: string) => (await taskOf(withConfig(`[environment]\nworkdir = "/app"\n${line}\n`))).environment.skills;
  assert.deepEqual(
    [await skillsOf('skills_dir = "/opt/skills/"'), await skillsOf('skills_dir = "skills"'), await skillsOf("")],
    ["/opt/skills", "/app/skills", undefined],
  );
});

async function refusal(files: Files, options: LoadOptions = {}): Promise<AlidadeError> {
  return (await taskOf(files, options).then(
    () => assert.fail("it was loaded"),
    (reason: unknown) => reason,
  )) as AlidadeError;
}

const compose = "services:\n  db: { image: postgres }\n";
for (const [title, files, param, said] of [
  ["no TOML", withConfig("a = ["), "line 1, column 5", /task\.toml: line 1.*is not TOML/],
  ["a later version", withConfig('schema_version = "2.0"\n'), "schema_version", /1\.0 to 1\.4/],
  ["a wrong type", withConfig('[environment]\ncpus = "two"\n'), "environment.cpus", /task\.toml: environment\.cpus/],
  ["a wrong name", withConfig('[task]\nname = "no slash"\n'), "task.name", /org\/name/],
  ["a GPU", withConfig("[environment]\ngpus = 1\n"), "environment.gpus", /is 1: sandboxes have no GPU/],
  ["Windows", withConfig('[environment]\nos = "Windows"\n'), "environment.os", /is "windows"/],
  ["a TPU", withConfig('[environment]\ntpu = { type = "v6e", topology = "2x2" }\n'), "environment.tpu", /no TPU/],
  [
    "an MCP server over sse",
    withConfig('[[environment.mcp_servers]]\nname = "files"\nurl = "http://files:8000/sse"\n'),
    "environment.mcp_servers.0.transport",
    /is "sse": write "streamable-http" or "stdio"/,
  ],
  [
    "an MCP server at a host that is no service",
    withConfig('[[environment.mcp_servers]]\nname = "files"\nurl = "http://files:8000/mcp"\ntransport = "streamable-http"\n'),
    "environment.mcp_servers.0.url",
    /names the host files, which is no service of the task/,
  ],
  [
    "an MCP server at a path whose percent-encoding cannot be read",
    withConfig('[[environment.mcp_servers]]\nname = "files"\nurl = "http://localhost:8000/%zz"\ntransport = "streamable-http"\n'),
    "environment.mcp_servers.0.url",
    /is "http:\/\/localhost:8000\/%zz": write http:/,
  ],
  [
    "skills of a verifier",
    withConfig('[verifier.environment]\ndocker_image = "x"\nskills_dir = "/skills"\n'),
    "verifier.environment.skills_dir",
    /is "\/skills": a verifier has no agent/,
  ],
  [
    "an MCP server of a verifier",
    withConfig('[verifier.environment]\ndocker_image = "x"\n[[verifier.environment.mcp_servers]]\nname = "files"\ncommand = "a"\n'),
    "verifier.environment.mcp_servers.0.name",
    /a verifier has no agent that could call them/,
  ],
  [
    "services of a verifier",
    { "tests/docker-compose.yaml": compose },
    "services",
    /tests\/docker-compose\.yaml: services: are not started/,
  ],
  ["an artifact of a sidecar", withConfig('artifacts = [{ source = "/a", service = "db" }]\n'), "artifacts.0.service", /is "db"/],
  ["an artifact above", withConfig('artifacts = ["../a"]\n'), "artifacts.0.source", /without \.\./],
  [
    "an address",
    withConfig('[environment]\nnetwork_mode = "allowlist"\nallowed_hosts = ["192.0.2.1"]\n'),
    "environment.allowed_hosts",
    /holds 192\.0\.2\.1/,
  ],
  [
    "a variable of the host",
    withConfig(`[environment]\nenv = { KEY = "\${HOME}" }\n`),
    "environment.env.KEY",
    /is \$\{HOME\}.*--task-env HOME/,
  ],
  [
    "a step of another user",
    { ...stepped, ...withConfig('[[steps]]\nname = "first"\n[steps.agent]\nuser = "root"\n') },
    "steps.0.agent.user",
    /is "root"/,
  ],
  [
    "a step of another network",
    { ...stepped, ...withConfig('[[steps]]\nname = "first"\n[steps.agent]\nnetwork_mode = "public"\n') },
    "steps.0.agent.network_mode",
    /is "public": all steps have one sandbox/,
  ],
  ["a step without a folder", withConfig('[[steps]]\nname = "third"\n'), "steps.0.name", /no folder steps\/third/],
  ["two steps of one name", withConfig('[[steps]]\nname = "a"\n[[steps]]\nname = "A"\n'), "steps", /two steps have one name/],
  ["a word of ours that is none", withConfig("[metadata.alidade]\nrange = [0, 2]\n"), "metadata.alidade.range", /range: is no field here/],
] as const) {
  test(`a task with ${title} is refused by its field`, async () => {
    const error = await refusal(files);
    assert.deepEqual([error.code, error.param], ["task_invalid", param]);
    assert.match(error.message, said);
  });
}

test("what is missing, or is a link out of the folder, is named with what would be right", async (t) => {
  for (const [missing, param] of [
    ["instruction.md", "the file"],
    ["tests/test.sh", "tests/test.sh"],
    ["environment/Dockerfile", "environment.docker_image"],
  ] as const) {
    const folder = await harborFolder({ one: Object.fromEntries(Object.entries(own).filter(([path]) => path !== missing)) });
    await assert.rejects(loadTasks(folder), { code: "task_invalid", param }, missing);
  }
  const folder = await harborFolder({ one: Object.fromEntries(Object.entries(own).filter(([path]) => path !== "instruction.md")) });
  await symlink("/etc/hostname", join(folder, "one/instruction.md"));
  await assert.rejects(loadTasks(folder), { code: "task_invalid", message: /links are not followed/ });
  t.diagnostic(folder);
});

test("of five tasks the broken one is named with file and field, and the others are loaded", async () => {
  const names = ["a", "b", "c", "d", "e"];
  const broken = withConfig('[verifier]\ntimeout_sec = "long"\n');
  const folder = await harborFolder(Object.fromEntries(names.map((name) => [name, { ...own, ...(name === "c" && broken) }])));
  const named: AlidadeError[] = [];
  const tasks = await loadTasks(folder, { onLeftOut: (error) => void named.push(error) });
  assert.deepEqual(
    tasks.map(({ task_id }) => task_id),
    ["a", "b", "d", "e"],
  );
  assert.deepEqual(
    named.map(({ param }) => param),
    ["verifier.timeout_sec"],
  );
  assert.match(named[0]?.message ?? "", /\/c\/task\.toml: verifier\.timeout_sec/);
});

test("a field that Harbor does not know is ignored as there, and said", async () => {
  const said: string[] = [];
  const task = await taskOf(withConfig("[environment]\ncpu = 3\n[agent]\nmodel = 'x'\n"), { progress: (line) => void said.push(line) });
  assert.equal(task.limits.cpus, 1);
  assert.match(said.join("\n"), /task\.toml: (?:agent\.model, environment\.cpu|environment\.cpu, agent\.model): no field of Harbor's/);
});

/** Links stay links, as Info-ZIP's --symlinks has it. */
const zipFolder = `
import os, sys, zipfile
with zipfile.ZipFile(sys.argv[2], "w", zipfile.ZIP_DEFLATED) as archive:
    for root, folders, files in os.walk(sys.argv[1]):
        for name in folders + files:
            path = os.path.join(root, name)
            info = zipfile.ZipInfo.from_file(path, os.path.relpath(path, sys.argv[1]))
            info.external_attr = os.lstat(path).st_mode << 16
            content = os.readlink(path) if os.path.islink(path) else b"" if os.path.isdir(path) else open(path, "rb").read()
            archive.writestr(info, content)
`;

async function packed(t: TestContext, folder: string, name: string): Promise<string> {
  const out = await mkdtemp(join(tmpdir(), "alidade-archive-"));
  t.after(() => rm(out, { recursive: true }));
  if (name.endsWith("zip")) await promisify(execFile)("python3", ["-c", zipFolder, folder, join(out, name)]);
  else await promisify(execFile)("tar", [name.endsWith("gz") ? "-czf" : "-cf", join(out, name), "-C", folder, "."]);
  return join(out, name);
}

for (const name of ["set.tar", "set.tar.gz", "set.tgz", "set.zip"])
  test(`an archive of task folders is loaded: ${name}`, async (t) => {
    if (!(await need(t, "python"))) return;
    const folder = await harborFolder({ "set/a": own, "set/b": own, [`set/${name}`]: own });
    await chmod(join(folder, "set/a/tests/test.sh"), 0o755);
    const archive = await packed(t, folder, name);
    const tasks = await loadTasks(archive);
    assert.deepEqual(tasks.map(({ task_id }) => task_id).sort(), ["a", "b", name].sort());
    assert.deepEqual(
      (await loadTasks(`${archive}#b`)).map(({ task_id }) => task_id),
      ["b"],
    );
    const modes = await Promise.all(
      tasks.map(async ({ environment }) => (await stat(join(environment.build?.context ?? "", "../tests/test.sh"))).mode & 0o100),
    );
    assert.equal(modes.filter((mode) => mode !== 0).length, 1);
  });

for (const suffix of ["tar.gz", "zip"])
  test(`an archive with a link, or that is none, is refused with its entry: ${suffix}`, async (t) => {
    if (!(await need(t, "python"))) return;
    const folder = await harborFolder({ a: own });
    await symlink("/etc/passwd", join(folder, "a/tests/answer"));
    const linked = await packed(t, folder, `x.${suffix}`);
    await assert.rejects(loadTasks(linked), { code: "task_invalid", message: /a\/tests\/answer: is a symlink/ });
    const none = await harborFolder({ "": { [`x.${suffix}`]: "no archive" } });
    await assert.rejects(loadTasks(join(none, `x.${suffix}`)), { code: "task_invalid", message: /cannot be unpacked/ });
  });

test("a zip whose content is damaged, or that reaches out of its folder, is refused", async (t) => {
  if (!(await need(t, "python"))) return;
  const archive = await packed(t, await harborFolder({ a: { ...own, "environment/data": "1".repeat(40) } }), "x.zip");
  const bytes = await readFile(archive);
  const at = bytes.indexOf("a/environment/data");
  const local = bytes.readUInt32LE(bytes.lastIndexOf("a/environment/data") - 46 + 16);
  assert.ok(at > 0 && local > 0);
  bytes.writeUInt32LE((local ^ 1) >>> 0, bytes.lastIndexOf("a/environment/data") - 46 + 16);
  await writeFile(archive, bytes);
  await assert.rejects(loadTasks(archive), { code: "task_invalid", message: /a\/environment\/data is damaged/ });
  const outside = Buffer.from((await readFile(archive)).toString("latin1").replaceAll("a/task.toml", "../tas.toml"), "latin1");
  await writeFile(archive, outside);
  await assert.rejects(loadTasks(archive), { code: "task_invalid", message: /\.\.\/tas\.toml/ });
});

test("a set of Harbor's tasks has one hash wherever it lies, and another one where a verifier's image or a solution changes", async () => {
  const files = {
    "task.toml": '[verifier]\nenvironment_mode = "separate"\n',
    "instruction.md": "Do it.\n",
    "environment/Dockerfile": "FROM scratch\nWORKDIR /app\nUSER root\n",
    "solution/solve.sh": "true\n",
    "tests/Dockerfile": "FROM scratch\nWORKDIR /app\nUSER root\n",
  };
  const hashAt = async (change: Record<string, string> = {}) => {
    const folder = await harborFolder({ one: { ...files, ...change } });
    return (await taskSetOf(folder, await loadTasks(folder))).tasks.map(({ hash }) => hash);
  };
  const first = await hashAt();
  assert.deepEqual(await hashAt(), first);
  assert.notDeepEqual(await hashAt({ "tests/extra": "1" }), first);
  assert.notDeepEqual(await hashAt({ "solution/solve.sh": "false\n" }), first);
});
