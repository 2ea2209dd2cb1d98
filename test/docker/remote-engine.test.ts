/**
 * An engine on another machine: it sees no folder of ours and none of its processes is ours to look at. Some of the attacks on
 * Docker run against it too; ALIDADE_TEST_REMOTE=1 adds the others. Left out are cases that look at the engine's
 * own disk and processes (the need "engine-here").
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { after, test } from "node:test";
import { type AlidadeError, type ErrorCode, errorCodes } from "../../base/errors.ts";
import { currentOwner } from "../../base/host/owner.ts";
import type { RolloutRecord } from "../../base/schema/rollout.ts";
import { Environment, Limits } from "../../base/schema/task.ts";
import { readRollouts } from "../../rollouts/index.ts";
import { sandboxContract } from "../../sandboxes/contract.ts";
import { baseImage } from "../../sandboxes/docker/images/made/base-image.ts";
import { dockerBackend } from "../../sandboxes/docker.ts";
import type { SandboxSpec } from "../../sandboxes/sandbox.ts";
import { ScriptedEngine } from "../fakes/engines/scripted-engine.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";
import { SecondEngine } from "../fakes/machine/second-engine.ts";
import { until } from "../fakes/machine/until.ts";
import { cliProcess, jsonOf, root } from "../fakes/processes/cli.ts";
import { DebianRegistry } from "../fakes/registries/debian-registry.ts";
import { chatHarness, runFile, solve, writeTask } from "../fakes/rollouts/small-task.ts";
import { need } from "../needs.ts";

const scratch = scratchFolder("remote");
const signal = AbortSignal.timeout(900_000);
let started: Promise<SecondEngine> | null = null;

function secondEngine(): Promise<SecondEngine> {
  started ??= SecondEngine.start(signal);
  return started;
}

const local = { host: "unix:///var/run/docker.sock" };

async function smallSpec(): Promise<SandboxSpec> {
  const limits = Limits.parse({ memory_mb: 128, disk_mb: 64 });
  return { run_id: "spread", owner: await currentOwner(), image: null, workdir: "/work", mounts: {}, env: {}, limits };
}

after(async () => (await started)?.[Symbol.asyncDispose]());

test("a rollout runs, is graded and its work is taken out on an engine that is reached by TLS alone", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "second-engine"))) return;
  const remote = await secondEngine();
  await using engine = await ScriptedEngine.start(solve);
  const file = await writeRun(engine.url, "far");
  const result = await cliProcess(["run", "-c", file, "-n", "2", "-o", join(scratch, "runs"), "--json"], {
    env: remote.env,
  });
  assert.equal(result.code, 0, result.stderr);
  const { rollouts } = jsonOf<{ rollouts: RolloutRecord[] }>(result);
  assert.deepEqual(
    rollouts.map(({ verdict, work, sandbox }) => [verdict?.reward, work?.paths, sandbox?.disk_limit]),
    [
      [1, 1, "watchdog"],
      [1, 1, "watchdog"],
    ],
  );
  assert.deepEqual(await remote.docker.listContainers({ all: true }), [], "nothing is left behind");
});

/** A task with a folder of its own that is mounted; returns the run file. */
async function writeRun(engine: string, id: string): Promise<string> {
  const place = await writeTask(scratch, id);
  await copyFile(chatHarness, join(place, "files", "chat-harness.ts"));
  await mkdir(join(place, "data"));
  await writeFile(join(place, "data", "answer"), "42\n");
  const task = await readFile(join(place, "task.yaml"), "utf8");
  const mounts = "environment: { files: files, mounts: { /opt/data: data } }";
  const checked = task
    .replace("environment: { files: files }", mounts)
    .replace("test -f done.txt", "grep -q 42 /opt/data/answer && test -f done.txt");
  assert.notEqual(checked, task);
  await writeFile(join(place, "task.yaml"), checked);
  const command = ["/opt/alidade/node/bin/node", "/work/chat-harness.ts", "{instruction}"];
  const text = runFile({ engine, tasks: [id], command });
  const file = join(scratch, `${id}.yaml`);
  await writeFile(file, text.replace("sandbox: process\nunsafe_host: true", "sandbox: docker"));
  return file;
}

test("a volume that a killed process left half filled is filled again", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "second-engine"))) return;
  const remote = await secondEngine();
  const folder = join(scratch, "mounted");
  await mkdir(folder);
  await writeFile(join(folder, "word"), "whole\n");
  const limits = Limits.parse({ memory_mb: 128, disk_mb: 64 });
  const own = { run_id: "half", image: null, workdir: "/work", mounts: { "/opt/word": folder }, env: {}, limits };
  const backend = dockerBackend({ engines: [remote.address] });
  const look = async () => {
    await using sandbox = await backend.create({ ...own, owner: await currentOwner() }, signal);
    return (await sandbox.exec(["sh", "-c", "cat /opt/word/word; touch /opt/word/x 2>/dev/null && echo written"])).stdout;
  };
  const volumes = async () => (await remote.docker.listVolumes()).Volumes.map(({ Name }) => Name);
  const before = await volumes();
  assert.equal(await look(), "whole\n");
  const name = (await volumes()).find((one) => !before.includes(one)) ?? "none";
  const listed = (await backend.images?.list(signal))?.find(({ id }) => id === name);
  assert.deepEqual([listed?.kind, listed?.in_use], ["mount", `process ${process.pid}`]);
  assert.ok((listed?.bytes ?? 0) > 0);
  // As it is after a kill between its making and its end; another process finds it.
  await remote.docker.getVolume(name).remove();
  await remote.docker.createVolume({ Name: name });
  const script = `const { dockerBackend } = await import(${JSON.stringify(join(root, "sandboxes/docker.ts"))});
    const { currentOwner } = await import(${JSON.stringify(join(root, "base/host/owner.ts"))});
    const sandbox = await dockerBackend().create({ ...${JSON.stringify(own)}, owner: await currentOwner() }, AbortSignal.timeout(60_000));
    console.log((await sandbox.exec(["cat", "/opt/word/word"])).stdout);
    process.exit();`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", script], {
    env: { ...process.env, ...remote.env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  assert.equal(await text(child.stdout), "whole\n\n");
  assert.equal((await remote.docker.listContainers()).length, 1);
  const { removed } = await backend.reap({}, signal);
  assert.match(removed.join("\n"), /container alidade-\w+ of run half \(its owner, process \d+, is gone\)/);
  assert.deepEqual(await remote.docker.listContainers({ all: true }), []);
  assert.ok((await volumes()).includes(name), "the volume of a pack stays for the next run");
  // An engine makes it again, empty, for a container that was asked for when another process removed it.
  await remote.docker.getVolume(name).remove();
  await remote.docker.createVolume({ Name: name });
  assert.equal(await look(), "whole\n");
});

test("a mount whose folder is not there is refused and ends nothing else", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "second-engine"))) return;
  const remote = await secondEngine();
  const rejections: unknown[] = [];
  const note = (reason: unknown) => void rejections.push(reason);
  process.on("unhandledRejection", note);
  t.after(() => process.off("unhandledRejection", note));
  const mounts = { "/opt/x": "/nonexistent/folder" };
  const made = dockerBackend({ engines: [remote.address] }).create({ ...(await smallSpec()), mounts }, signal);
  await assert.rejects(made, { code: "sandbox_unavailable", message: /nonexistent/ });
  assert.deepEqual(rejections, []);
});

test("sandboxes are spread over the engines of a list, and go to those that have their image", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "second-engine"))) return;
  const remote = await secondEngine();
  const backend = dockerBackend({ engines: [local, remote.address] });
  const make = async (more: Partial<SandboxSpec> = {}) => backend.create({ ...(await smallSpec()), ...more }, signal);
  await using first = await make();
  await using second = await make();
  assert.deepEqual([first.facts.engine, second.facts.engine].sort(), [remote.address.host, local.host].sort());
  assert.equal(first.facts.image_digest, second.facts.image_digest);
  const only = remote.docker.getImage(baseImage);
  await only.tag({ repo: "alidade/test-far", tag: "1" });
  await using third = await make({ image: "alidade/test-far:1" });
  await using fourth = await make({ image: "alidade/test-far:1" });
  assert.deepEqual([third.facts.engine, fourth.facts.engine], [remote.address.host, remote.address.host]);
});

test("an engine takes what it pulls from its registry mirror", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "second-engine")) || !(await need(t, "docker-registry"))) return;
  const remote = await secondEngine();
  await using registry = await DebianRegistry.start(remote.mirror);
  const image = "team/small:1";
  await dockerBackend({ engines: [remote.address] }).prepare([Environment.parse({ image })], { signal });
  const { RepoDigests } = await remote.docker.getImage(image).inspect();
  assert.deepEqual(RepoDigests, [`team/small@${registry.digest}`]);
});

test("what is under way at an engine that is cut off fails, and the next sandbox is made at another", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "second-engine"))) return;
  const remote = await secondEngine();
  const backend = dockerBackend({ engines: [remote.address, local], silence_ms: 1_000 });
  const spec = await smallSpec();
  const sandbox = await backend.create(spec, signal);
  assert.equal(sandbox.facts.engine, remote.address.host);
  const command = sandbox.exec(["sleep", "600"]).then(() => null);
  command.catch(() => {});
  remote.connect(false);
  try {
    await assert.rejects(
      () => command,
      ({ code }: AlidadeError) => (errorCodes[code] ?? "infrastructure") === "infrastructure",
    );
    await assert.rejects(async () => sandbox[Symbol.asyncDispose]());
    await using other = await backend.create(spec, signal);
    assert.equal(other.facts.engine, local.host);
  } finally {
    remote.connect(true);
  }
  await until(async () => (await backend.reap({ only_look: true }, signal)).failed.length === 0);
  await remote.docker.getContainer(sandbox.id).remove({ force: true, v: true });
});

/** The rest of the contract goes the same ways as these and the rollout above. */
const everything = process.env.ALIDADE_TEST_REMOTE === "1";
const short =
  /^(files that are written|a snapshot starts again|of services apart|the host connects|the host speaks|the state of a service|a service apart)/;

for (const { says, check } of sandboxContract.filter((one) => everything || short.test(one.says)))
  test(`on another machine: ${says}`, { timeout: 300_000 }, async (t) => {
    if (!(await need(t, "second-engine"))) return;
    const remote = await secondEngine();
    await check(dockerBackend({ engines: [remote.address] }), { owner: await currentOwner(), run_id: "contract", signal });
  });

const attacks = ["docker/hostile-work", "docker/isolation", "docker/kernel"];
const others = [
  "docker/apart",
  "docker/failures",
  "docker/grade",
  "docker/layer-ways",
  "docker/modes",
  "docker/reap",
  "docker/start",
  "docker/tool-services",
];
const contracts = ["contracts/sandboxes", "contracts/set-up"];

test("the attacks on Docker fail on another machine too", { timeout: 3_000_000 }, async (t) => {
  if (!(await need(t, "second-engine"))) return;
  const remote = await secondEngine();
  const files = [...attacks, ...(everything ? [...others, ...contracts] : [])].map((name) => `test/${name}.test.ts`);
  const { NODE_TEST_CONTEXT: _, ...own } = process.env; // with it the child would take itself for a part of this file, and run nothing
  const child = spawn(process.execPath, ["--test", "--test-concurrency=2", ...files], {
    cwd: root,
    env: { ...own, ...remote.env, ALIDADE_TEST_ALL: "0" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [said, [code]] = await Promise.all([text(child.stdout), once(child, "close")]);
  assert.equal(code, 0, said);
  assert.match(said, /pass [1-9]/);
});

// The last one: the engine is gone afterwards.
test("a rollout whose engine dies is an infrastructure failure, and is tried again at another engine", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "second-engine"))) return;
  const remote = await secondEngine();
  // Both harnesses stand in their second call when the engine of one of them is killed.
  const killed = Promise.withResolvers<void>();
  let waiting = 0;
  await using engine = await ScriptedEngine.start((request) => {
    if (!request.messages.some((message) => message.role === "assistant")) return solve(request);
    if (++waiting === 2) void remote[Symbol.asyncDispose]().then(killed.resolve);
    return { ...solve(request), before: killed.promise };
  });
  const file = await writeRun(engine.url, "dies");
  const list = ["--docker-engine", local.host, "--docker-engine", remote.address.host];
  const options = { env: { DOCKER_CERT_PATH: remote.address.cert_path } };
  const result = await cliProcess(["run", "-c", file, "-n", "2", ...list, "-o", join(scratch, "runs"), "--json"], options);
  assert.equal(result.code, 0, result.stderr);
  const { run, rollouts } = jsonOf<{ run: string; rollouts: RolloutRecord[] }>(result);
  assert.deepEqual(rollouts.map(({ attempt, verdict, sandbox }) => [attempt, verdict?.reward, sandbox?.engine]).sort(), [
    [1, 1, local.host],
    [2, 1, local.host],
  ]);
  const [lost] = (await readRollouts(run)).filter(({ error }) => error !== null);
  assert.deepEqual(
    [lost?.sandbox?.engine, lost?.verdict, errorCodes[lost?.error?.code as ErrorCode]],
    [remote.address.host, null, "infrastructure"],
  );
});
