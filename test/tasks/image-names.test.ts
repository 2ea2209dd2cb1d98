/** The name of an image comes from strangers and becomes part of a path at the engine: at each door through which one comes, nothing but a name passes. */
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { PolarRequest } from "../../service/polar/polar-request.ts";
import { inlineTask } from "../../tasks/inline-task.ts";
import { loadTasks } from "../../tasks/load-tasks.ts";
import type { LoadOptions } from "../../tasks/task-format.ts";
import { harborFolder } from "../fakes/harbor-tasks.ts";
import { CountingListener } from "../fakes/machine/counting-listener.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";
import { ScriptedDocker } from "../fakes/machine/scripted-docker.ts";
import { cliProcess } from "../fakes/processes/cli.ts";

const scratch = scratchFolder("image-names");

/** `host`: where each of them would lead. */
const attacks = (host: string): string[] => [
  `../../${host}/path`,
  `../../../${host}/path?x=`,
  `/${host}/path`,
  `//${host}/path`,
  `http://${host}/path`,
  `..%2f..%2f${host}%2fpath`,
  `%2e%2e/%2e%2e/${host}/path`,
  `a/../../${host}/path`,
  `a/./../..//${host}`,
  `${host}/../x`,
  `${host}//x`,
  "debian:12?x=1",
  "debian:12#x",
  "debian:12/json?",
  "../containers/json?all=1",
  "..\\..\\x",
  "Debian:12",
  "debian:12\n",
  "debian\nRUN x",
  "debian:12 --privileged",
  "--privileged",
  "debian:\u0000",
  "dėbian",
  "user@host/a",
  "a:b:c",
  "-a/b",
  "a-/b",
  ".",
  "..",
  ":12",
  "@sha256:0",
  "",
  "a".repeat(501),
  `${"a/".repeat(100_000)}a`,
];

const patch = "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-one\n+two\n";
const row = {
  instance_id: "psf__requests-1142",
  repo: "psf/requests",
  base_commit: "22623bd8c265b78b161542663ee980738441c307",
  patch,
  test_patch: patch,
  problem_statement: "It is broken.",
  version: "1.1",
  FAIL_TO_PASS: ["a.py::test"],
  PASS_TO_PASS: [],
};
const rebench = { ...row, install_config: { test_cmd: "pytest", log_parser: "parse_log_pytest" } };
const smith = { ...row, repo: "swesmith/mido__mido.a0158ff9" };
const gym = { repo_name: "a", commit_hash: "22623bd8", expected_output_json: "{}" };
const recipe = (base_image_name: string) => ({
  ...rebench,
  image_name: "a/b:1",
  install_config: { ...rebench.install_config, base_image_name, install: [] },
});
const harborTask = {
  "task.toml": 'schema_version = "1.4"\n',
  "instruction.md": "Do it.\n",
  "environment/Dockerfile": "FROM scratch\nWORKDIR /app\nUSER worker\n",
  "tests/test.sh": "true\n",
};
const task = { task_id: "t", instruction: "Do it.", grader: { kind: "script", command: ["true"] } };
/** A text of TOML, and of YAML. */
const toml = (text: string): string => JSON.stringify(text);
const compose = (image: string): string => JSON.stringify({ services: { main: {}, db: { image } } });

type Door = [name: string, enter: (image: string) => Promise<unknown>, field: RegExp];

const doors: Door[] = [
  ["a task file", (image) => load("task.json", { ...task, environment: { image } }), /environment\.image: is /],
  ["a file of tasks", (image) => load("tasks.jsonl", { ...task, environment: { image } }), /environment\.image: is /],
  [
    "a service beside the sandbox",
    (image) => load("services.json", { ...task, environment: { services: { db: { image } } } }),
    /environment\.services\.db\.image: is /,
  ],
  ["a task that a trainer sends", (image) => inlineTask({ ...task, environment: { image } }), /environment\.image: is /],
  ["Harbor's task.toml", (image) => harbor({ "task.toml": `[environment]\ndocker_image = ${toml(image)}\n` }), /docker_image: is /],
  [
    "a verifier of Harbor's",
    (image) => harbor({ "task.toml": `[verifier.environment]\ndocker_image = ${toml(image)}\n` }),
    /verifier\.environment\.docker_image: is /,
  ],
  ["a compose file", (image) => harbor({ "environment/docker-compose.yaml": compose(image) }), /services\.db\.image: /],
  ["rows of SWE-bench", (image) => load("bench.jsonl", { ...row, image }), /image: is /],
  ["rows of SWE-rebench", (docker_image) => load("rebench.jsonl", { ...rebench, docker_image }), /docker_image: is /],
  ["rows of SWE-rebench-V2", (image_name) => load("v2.jsonl", { ...rebench, image_name }), /image_name: is /],
  ["rows of SWE-smith", (image_name) => load("smith.jsonl", { ...smith, image_name }), /image_name: is /],
  ["rows of R2E-Gym", (docker_image) => load("gym.jsonl", { ...gym, docker_image }), /docker_image: is /],
  ["a recipe of SWE-rebench-V2", (image) => load("recipe.jsonl", recipe(image), { images: "build" }), /base_image_name: is /],
];

async function load(name: string, value: unknown, options: LoadOptions = {}): Promise<unknown> {
  await writeFile(join(scratch, name), `${JSON.stringify(value)}\n`);
  return loadTasks(join(scratch, name), options);
}

async function harbor(files: Record<string, string>): Promise<unknown> {
  return loadTasks(await harborFolder({ one: { ...harborTask, ...files } }));
}

for (const [door, enter, field] of doors)
  test(`${door} is refused for an image that is no name, by its field`, async () => {
    for (const image of attacks("127.0.0.1:1"))
      await assert.rejects(enter(image), { code: "task_invalid", message: field }, JSON.stringify(image.slice(0, 80)));
  });

test("a request of Polar's is refused for an image that is no name, by its field", () => {
  // White space around it is taken away there.
  for (const image of attacks("127.0.0.1:1").filter((name) => name.trim() === name || name.includes("\nRUN"))) {
    const { error } = PolarRequest.safeParse({ task_id: "t", instruction: "i", agent: {}, runtime: { image } });
    assert.deepEqual(error?.issues[0]?.path, ["runtime", "image"], JSON.stringify(image.slice(0, 80)));
  }
});

test("a Dockerfile is refused for an image that is no name, in FROM, in an argument of it and in COPY --from", async () => {
  const words = attacks("127.0.0.1:1").filter((name) => name !== "" && !/[\s\0\\]/.test(name) && !name.startsWith("--"));
  for (const image of words)
    for (const lines of [`FROM ${image}`, `ARG BASE=${image}\nFROM $BASE`, `FROM scratch\nCOPY --from=${image} /a /a`])
      await assert.rejects(
        harbor({ "environment/Dockerfile": `${lines}\nWORKDIR /app\nUSER root\n` }),
        { code: "task_invalid", message: /Dockerfile takes an image/ },
        lines.slice(0, 80),
      );
});

test("an instance whose name makes no name of an image is left out, and the other rows are loaded", async () => {
  const bad = { ...row, instance_id: "../../127.0.0.1:1/x" };
  await writeFile(join(scratch, "instances.jsonl"), [row, bad].map((one) => `${JSON.stringify(one)}\n`).join(""));
  const leftOut: string[] = [];
  const tasks = await loadTasks(join(scratch, "instances.jsonl"), { onLeftOut: ({ message }) => void leftOut.push(message) });
  assert.deepEqual([tasks.length, leftOut.length], [1, 1]);
  assert.match(leftOut[0] ?? "", /instances\.jsonl:2: environment\.image: is "swebench\/sweb\.eval/);
});

test("names of all registries are names", async () => {
  const id = `sha256:${"0".repeat(64)}`;
  for (const image of [
    "debian",
    "debian:12-slim",
    "a/b",
    "ghcr.io/a/b/c_d:V1.0",
    "localhost:5000/a",
    `127.0.0.1:5000/a/b@${id}`,
    id,
    "a__b/c---d",
  ])
    await load("good.json", { ...task, environment: { image } });
});

test("`tasks list` and `tasks validate` reach nothing that a task's image names, and name each such task", async () => {
  await using elsewhere = await CountingListener.start();
  await using engine = await ScriptedDocker.start(scratch, (_, response) => {
    response.writeHead(301, { location: `http://${elsewhere.host}/x` }).end();
  });
  const images = [`../../${elsewhere.host}/path`, "../../no-such-host.invalid/path", "debian:12"];
  const folder = await harborFolder(
    Object.fromEntries(
      images.map((image, at) => [`task-${at}`, { ...harborTask, "task.toml": `[environment]\ndocker_image = ${toml(image)}\n` }]),
    ),
  );
  const verbs: [args: string[], asked: string[]][] = [
    [["validate"], []],
    [["validate", "--pull"], ["GET /images/debian:12/json"]],
    [["list"], ["GET /images/debian:12/json"]],
  ];
  for (const [[action = "", ...flags], asked] of verbs) {
    engine.asked.length = 0;
    const { code, stdout, stderr } = await cliProcess(["tasks", action, folder, ...flags], { env: { DOCKER_HOST: engine.host } });
    assert.equal(code, 1, stderr);
    for (const at of [0, 1]) assert.match(stderr, new RegExp(`task-${at}/task\\.toml: environment\\.docker_image: is "\\.\\.`));
    assert.deepEqual(engine.asked, asked, stderr);
    if (asked.length === 0) assert.match(stdout, /^1 tasks can be loaded, 2 cannot/);
    else
      assert.match(stderr, /task-2\/task\.toml: environment\.docker_image: .*HTTP code 301.*, or build the Dockerfile that lies beside it/);
  }
  assert.equal(elsewhere.connections, 0);
});
