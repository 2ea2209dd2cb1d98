/** What becomes of a task's image before its sandboxes are made, at a real engine. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { copyFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, test } from "node:test";
import { promisify } from "node:util";
import { currentOwner } from "../../base/host/owner.ts";
import type { RolloutRecord } from "../../base/schema/rollout.ts";
import { Environment, Limits } from "../../base/schema/task.ts";
import { dockerClient } from "../../sandboxes/docker/client.ts";
import { environmentImage } from "../../sandboxes/docker/images/environment-image.ts";
import { hasImage } from "../../sandboxes/docker/images/has-image.ts";
import { imageFacts } from "../../sandboxes/docker/images/image-facts.ts";
import { ensureBaseImage } from "../../sandboxes/docker/images/made/base-image.ts";
import { readContext } from "../../sandboxes/docker/images/made/build-context.ts";
import { buildImage } from "../../sandboxes/docker/images/made/build-image.ts";
import { type PullOptions, pullImage } from "../../sandboxes/docker/images/pull-image.ts";
import { docker } from "../../sandboxes/docker.ts";
import { specOf } from "../../sandboxes/task-spec.ts";
import { ScriptedEngine } from "../fakes/engines/scripted-engine.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";
import { until } from "../fakes/machine/until.ts";
import { cli, jsonOf } from "../fakes/processes/cli.ts";
import { DebianRegistry, debianRegistryMissing } from "../fakes/registries/debian-registry.ts";
import { ScriptedRegistry } from "../fakes/registries/scripted-registry.ts";
import { chatHarness, runFile, solve, writeTask } from "../fakes/rollouts/small-task.ts";
import { need } from "../needs.ts";

const signal = AbortSignal.timeout(900_000);
const scratch = scratchFolder("images");
const owner = { run_id: "images", owner: await currentOwner() };
const limits = Limits.parse({ memory_mb: 128, disk_mb: 64 });

const made = new Set<string>();
after(async () => {
  for (const image of made) await promisify(execFile)("docker", ["rmi", image]).catch(() => {});
});

/** Debian's, where it is installed. */
async function startRegistry(options: { login?: boolean } = {}): Promise<DebianRegistry | ScriptedRegistry> {
  return (await debianRegistryMissing()) === null ? DebianRegistry.start(options) : ScriptedRegistry.start(options);
}

const sandboxOf = (environment: Environment) => docker.create(specOf({ environment, limits }, owner), signal);

async function buildOf(name: string, lines: string, files: Record<string, string> = {}): Promise<Environment> {
  const context = join(scratch, name);
  await mkdir(context, { recursive: true });
  const base = await ensureBaseImage({ signal });
  for (const [path, content] of Object.entries({ Dockerfile: `FROM ${base}\n${lines}\n`, ...files }))
    await writeFile(join(context, path), content);
  // As root: no second image is made of it, whose workdir is the agent's, and nothing is left behind.
  return Environment.parse({ build: { context, args: { GREETING: "hello" } }, workdir: "/made", user: "root" });
}

test("a task's build is made once by content hash; one that fails is typed, with the end of its output, and others go on", {
  timeout: 300_000,
}, async (t) => {
  if (!(await need(t, "docker"))) return;
  const lines = `ARG GREETING\nCOPY a.txt /made/\nRUN echo $GREETING >> /made/a.txt\nLABEL made.by=${process.pid}`;
  const good = await buildOf("good", lines, { "a.txt": "a\n" });
  const bad = await buildOf("bad", "RUN echo the compiler says this; exit 3");
  const heredoc = await buildOf("heredoc", "RUN <<EOF\nexit 4\nEOF");
  const said: string[] = [];
  await docker.prepare([good, good, bad, heredoc], { signal, progress: (line) => said.push(line) });
  assert.equal(said.filter((line) => line.startsWith("Building")).length, 3, said.join("\n"));
  await using sandbox = await sandboxOf(good);
  made.add(sandbox.facts.image ?? "");
  assert.equal((await sandbox.exec(["cat", "a.txt"])).stdout, "a\nhello\n");
  assert.match(sandbox.facts.image ?? "", /^alidade\/built:[0-9a-f]{16}$/);
  assert.equal(sandbox.facts.image_repo_digest, null);
  const failure = { code: "image_build_failed", param: "environment.build" };
  await assert.rejects(sandboxOf(bad), { ...failure, message: /exit code: 3.*The end of its output:\n.*the compiler says this/s });
  await assert.rejects(sandboxOf(heredoc), { ...failure, message: /heredoc/ });
  const again: string[] = [];
  await docker.prepare([good], { signal, progress: (line) => again.push(line) });
  assert.deepEqual(again, []);
});

test("a context that changes while it is sent fails its build, and no image has the name", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "docker"))) return;
  const { build } = await buildOf("changing", "COPY . /made/");
  assert.ok(build);
  const context = { ...(await readContext(build)), sha256: "of other content" };
  const image = `alidade/built:never-${process.pid}`;
  const client = await dockerClient();
  const building = buildImage(client, { image, context, args: {}, platform: null }, { signal });
  await assert.rejects(building, { code: "task_invalid", message: /changed while it was read/ });
  assert.equal(await hasImage(client, image), false);
});

test("in a run, a task whose build fails is left out with the build's last words, the others are graded, and records have the image's ids", {
  timeout: 300_000,
}, async (t) => {
  if (!(await need(t, "docker"))) return;
  await using engine = await ScriptedEngine.start(solve);
  const base = await ensureBaseImage({ signal });
  for (const [id, line] of [
    ["bad", "RUN echo no compiler; exit 3"],
    ["good", `LABEL made.by=${process.pid}-run`],
  ] as const) {
    const place = await writeTask(scratch, id);
    await mkdir(join(place, "image"));
    await writeFile(join(place, "image", "Dockerfile"), `FROM ${base}\n${line}\n`);
    await copyFile(chatHarness, join(place, "files", "chat-harness.ts"));
    const task = await readFile(join(place, "task.yaml"), "utf8");
    await writeFile(join(place, "task.yaml"), task.replace("{ files: files }", "{ files: files, build: { context: image } }"));
  }
  const command = ["/opt/alidade/node/bin/node", "/work/chat-harness.ts", "{instruction}"];
  const text = runFile({ engine: engine.url, tasks: ["bad", "good"], command, more: "retries: 0\n" });
  const file = join(scratch, "run.yaml");
  await writeFile(file, text.replace("sandbox: process\nunsafe_host: true", "sandbox: docker").replace("samples: 2", "samples: 1"));
  const ended = await cli(["run", "-c", file, "--out", join(scratch, "runs"), "--json"]);
  const { rollouts, left_out } = jsonOf<{ rollouts: RolloutRecord[]; left_out: string[] }>(ended);
  const [good, ...more] = rollouts;
  assert.deepEqual([more, left_out.length, ended.code], [[], 1, 1], ended.stderr);
  assert.match(left_out[0] ?? "", /^task bad: .*The end of its output:\n.*no compiler/s);
  assert.deepEqual([good?.error, good?.verdict?.reward], [null, 1], JSON.stringify(good));
  made.add(String(good?.sandbox?.image));
  assert.match(String(good?.sandbox?.image_digest), /^sha256:/);
  assert.equal(good?.sandbox?.image_repo_digest, null);
});

test("fifty that want one unknown image make one pull, and its facts have the registry's digest", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "docker"))) return;
  await using registry = await startRegistry();
  const { image } = registry;
  made.add(image);
  const client = await dockerClient();
  const environment = Environment.parse({ image });
  const names = await Promise.all(Array.from({ length: 50 }, () => environmentImage(client, environment, { signal })));
  await until(() => registry.layers > 0);
  assert.deepEqual([new Set(names), registry.layers], [new Set([image]), 1]);
  const facts = await imageFacts(client, image);
  assert.equal(facts.repo_digest, `${image.slice(0, -2)}@${registry.digest}`);
  await registry[Symbol.asyncDispose]();
  await docker.prepare([environment, environment], { signal, user: { run_id: "r1", tasks: ["a", "b"] } });
  const listed = (await docker.images?.list(signal))?.find(({ names }) => names.includes(image));
  assert.deepEqual([listed?.kind, listed?.runs, listed?.tasks, listed?.in_use], ["pulled", ["r1"], ["a", "b"], "run r1"]);
});

test("a pull waits longer and longer at a rate limit, and not where the registry refuses", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "docker"))) return;
  const client = await dockerClient();
  const waits: number[] = [];
  const said: string[] = [];
  const options: PullOptions = {
    signal,
    progress: (line) => said.push(line),
    pause: async (milliseconds) => void waits.push(milliseconds),
  };
  await using limited = await ScriptedRegistry.start({ limited: 6 });
  made.add(limited.image);
  await pullImage(client, limited.image, null, options);
  // An engine asks twice a pull.
  assert.deepEqual(waits, [5_000, 10_000, 20_000, 40_000, 60_000].slice(0, Math.max(2, waits.length)), said.join("\n"));
  assert.match(said.join("\n"), /trying again in 5 s.*\nPulled /s);
  waits.length = 0;
  const failure = { code: "image_pull_failed", param: "environment.image" };
  await assert.rejects(pullImage(client, `${limited.host}/team/none:1`, null, options), failure);
  assert.deepEqual(waits, []);
  await using closed = await ScriptedRegistry.start({ limited: 100 });
  await assert.rejects(pullImage(client, closed.image, null, options), { ...failure, message: /toomanyrequests/i });
  assert.equal(waits.length, 5);
});

test("a pull takes the login of Docker's own configuration, and without one says how to log in", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "docker"))) return;
  const client = await dockerClient();
  await using registry = await startRegistry({ login: true });
  made.add(registry.image);
  const folder = join(scratch, "docker-config");
  await mkdir(folder);
  const pull = () => pullImage(client, registry.image, null, { signal, env: { DOCKER_CONFIG: folder } });
  await assert.rejects(pull(), { code: "image_pull_failed", message: new RegExp(`without a login.*docker login ${registry.host}`) });
  const auth = Buffer.from("me:secret").toString("base64");
  await writeFile(join(folder, "config.json"), JSON.stringify({ auths: { [registry.host]: { auth } } }));
  await pull();
});

test("the base image of a build is pulled first, as any other image", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "docker"))) return;
  await using registry = await ScriptedRegistry.start();
  made.add(registry.image);
  const context = join(scratch, "from-registry");
  await mkdir(context);
  await writeFile(join(context, "Dockerfile"), `ARG BASE\nFROM $BASE\nCOPY . /made\n`);
  const build = { context, dockerfile: "Dockerfile", args: { BASE: registry.image } };
  const said: string[] = [];
  const progress = (line: string) => void said.push(line);
  made.add(await environmentImage(await dockerClient(), { image: null, build }, { signal, progress }));
  assert.deepEqual(
    said.filter((line) => /^(?:Pulled|Building|Built)/.test(line)).map((line) => line.split(" ")[0]),
    ["Pulled", "Building", "Built"],
  );
  assert.equal(registry.seen.layers, 1);
});
