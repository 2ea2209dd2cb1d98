/** What an agent can prepare in its container against those that take its work out and place it elsewhere. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { temporaryLayers } from "../../base/files/layer.ts";
import { currentOwner } from "../../base/host/owner.ts";
import { Task } from "../../base/schema/task.ts";
import { deliveredFiles, deliveredSandbox } from "../../graders/grade.ts";
import { type Except, placeWork, takeWork, workEvidence } from "../../graders/work/work.ts";
import { dockerClient } from "../../sandboxes/docker/client.ts";
import { unstarted } from "../../sandboxes/docker/images/unstarted.ts";
import { capLayer } from "../../sandboxes/docker/layer/capped-layer.ts";
import { isOverlay } from "../../sandboxes/docker/layer/overlay-mounts.ts";
import { docker, dockerBackend } from "../../sandboxes/docker.ts";
import type { Sandbox } from "../../sandboxes/sandbox.ts";
import { folderOf } from "../fakes/kept-work.ts";
import { strayErrors } from "../fakes/machine/stray-errors.ts";
import { need } from "../needs.ts";
import { testImage } from "./test-image.ts";

const signal = AbortSignal.timeout(900_000);
const owner = { run_id: "hostile-work", owner: await currentOwner() };
const run = promisify(execFile);
const limit = { timeout: 120_000 };

async function taskOf(environment: Record<string, unknown>, more: Record<string, number> = {}): Promise<Task> {
  const image = await testImage(
    "hostile",
    "RUN mkdir -p /testbed/bin /testbed/pkg /opt/real && echo base > /testbed/pkg/check && echo base > /testbed/pkg/other && ln -s /opt/real /testbed/link\nENV PATH=/testbed/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
  );
  const files = await folderOf([{ path: "given/check", content: Buffer.from("base\n"), mode: 0o644 }]);
  const grader = { kind: "script", command: ["true"] };
  const limits = { memory_mb: 256, disk_mb: 64, ...more };
  return Task.parse({
    task_id: "hostile",
    instruction: "i",
    environment: { image, workdir: "/testbed", files, ...environment },
    grader,
    limits,
  });
}

async function says(sandbox: Sandbox, script: string): Promise<string> {
  const { stdout, stderr, exit_code } = await sandbox.exec(["/bin/bash", "-c", script], { timeout_ms: 60_000 });
  assert.equal(exit_code, 0, stderr);
  return stdout;
}

/** What `look` prints in a fresh sandbox with the work of an agent that ran `script`. */
async function after(
  script: string,
  look: string,
  { except = {}, limits, ...environment }: { except?: Except; work?: unknown; limits?: Record<string, number> } = {},
  backend = docker,
) {
  const task = await taskOf(environment, limits);
  await using kept = await temporaryLayers();
  await using sandbox = await deliveredSandbox(task, backend, owner, signal);
  await says(sandbox, script);
  await sandbox.freeze();
  const work = await takeWork(sandbox, task, await deliveredFiles(task), kept.folder, signal);
  await using fresh = await deliveredSandbox(task, docker, owner, signal);
  await placeWork(fresh, task, work, except, signal);
  return await says(fresh, look);
}

const hasDocker = (t: TestContext) => need(t, "docker");

test("docker: protected files stay where their folder is removed, or is a link to the agent's own", limit, async (t) => {
  if (!(await hasDocker(t))) return;
  const script = "rm -r pkg given; mkdir evil; echo forged > evil/check; ln -s evil given";
  assert.equal(await after(script, "cat pkg/check given/check; ls pkg", { except: { protected: ["**/check"] } }), "base\nbase\ncheck\n");
});

test("docker: a folder that all may write stands in the place of the image's link, and nothing goes through it", limit, async (t) => {
  if (!(await hasDocker(t))) return;
  const script = "rm link; mkdir -m 777 link; echo mine > link/file";
  assert.equal(await after(script, "stat -c '%F %a %U' link; cat link/file; ls /opt/real"), "directory 777 agent\nmine\n");
});

test("docker: second names of one file of the image are read once, and stay one file", limit, async (t) => {
  if (!(await hasDocker(t))) return;
  assert.equal(await after("for i in {1..300}; do ln pkg/other $i; done", "cat 300; test 1 -ef 300 && echo same"), "base\nsame\n");
});

test("docker: programs that the agent puts into the image's PATH are not run to end its processes", limit, async (t) => {
  if (!(await hasDocker(t))) return;
  await using sandbox = await deliveredSandbox(await taskOf({}), docker, owner, signal);
  await says(sandbox, "printf '#!/bin/bash\\ntouch /testbed/RUN; exit 0\\n' | tee bin/sh bin/cat bin/grep >/dev/null; chmod +x bin/*");
  await says(sandbox, "setsid sleep 4000 >/dev/null 2>&1 &");
  await sandbox.freeze();
  assert.doesNotMatch((await run("docker", ["top", sandbox.id, "-eo", "pid,args"])).stdout, /sleep 4000/);
  assert.doesNotMatch(await says(sandbox, "ls"), /RUN/);
});

test("docker: root that may have replaced the system's programs is paused while its work is taken out", limit, async (t) => {
  if (!(await hasDocker(t))) return;
  await using sandbox = await deliveredSandbox(await taskOf({ user: "root", writable: "root" }), docker, owner, signal);
  await says(sandbox, "ln -sfn true /usr/bin/sh; ln -sfn true /usr/bin/dash; setsid sleep 4000 >/dev/null 2>&1 &");
  await sandbox.freeze();
  assert.equal((await run("docker", ["inspect", "-f", "{{.State.Paused}}", sandbox.id])).stdout, "true\n");
});

test("docker: where only reads follow all stops where it stands, a fork bomb too, and the same work is taken", limit, async (t) => {
  if (!(await hasDocker(t))) return;
  await using sandbox = await deliveredSandbox(await taskOf({}), docker, owner, signal);
  await says(sandbox, "setsid sh -c 'while :; do echo x >> /testbed/ticks; (:) & done' >/dev/null 2>&1 &");
  while (!(await says(sandbox, "cat ticks 2>/dev/null || true"))) await new Promise((resolve) => setTimeout(resolve, 50));
  await sandbox.freeze("reads");
  assert.equal((await run("docker", ["inspect", "-f", "{{.State.Paused}}", sandbox.id])).stdout, "true\n");
  await using kept = await temporaryLayers();
  const take = async () => (await takeWork(sandbox, await taskOf({}), [], kept.folder, signal)).sha256;
  assert.equal(await take(), await take());
});

test("docker: a hole beside the layer is refused and not read where the engine packs the layer", limit, async (t) => {
  if (!(await need(t, "docker-itself"))) return;
  const script = "truncate -s 4T /home/agent/hole; for i in {1..30}; do mkdir /home/$i; done";
  const environment = { work: "layer", user: "root", writable: "root" } as object;
  await assert.rejects(after(script, "", environment, dockerBackend({ layer: "engine" })), { code: "output_too_large" });
});

test("docker: a hole beside a work in a memory file system is not read to its end", limit, async (t) => {
  if (!(await hasDocker(t))) return;
  const script = "mkdir /tmp/out; echo work > /tmp/out/file; truncate -s 7E /tmp/hole";
  const environment = { work: ["/tmp/out"] } as object;
  const taken = await after(script, "cat /tmp/out/file", environment).catch((error: { code?: string }) => error.code);
  // Podman packs the whole place, which is refused then.
  assert.ok(["work\n", "output_too_large"].includes(taken ?? ""), taken);
});

/** Both ways in which a layer is read. */
const ways = [
  ["overlay", docker, "docker"],
  ["engine", dockerBackend({ layer: "engine" }), "docker-itself"],
] as const;

for (const [way, backend, needed] of ways) {
  for (const [what, code, script] of [
    ["more files than may be", "output_too_large", "seq 20050 | xargs touch"],
    ["thousands of files, then a hole of 100 GB", "output_too_large", "seq 3000 | xargs touch; truncate -s 100G z"],
    ["thousands of files, then a link whose target is no text", "output_unreadable", "seq 3000 | xargs touch; ln -s $'a\\xff' z"],
    ["thousands of files, then a name that is no text", "output_unreadable", "seq 3000 | xargs touch; touch $'z\\xff'"],
  ] as const)
    test(`docker (${way}): ${what} end that work alone: its siblings are taken beside it`, limit, async (t) => {
      if (!(await need(t, needed))) return;
      const stray = strayErrors(t);
      const task = await taskOf({}, { disk_mb: 128, work_files: 20_000 });
      await using kept = await temporaryLayers();
      const delivered = await deliveredFiles(task);
      const take = async (script: string) => {
        await using sandbox = await deliveredSandbox(task, backend, owner, signal);
        await says(sandbox, script);
        await sandbox.freeze();
        return workEvidence(await takeWork(sandbox, task, delivered, kept.folder, signal), task).added;
      };
      const [hostile, sibling] = await Promise.allSettled([take(script), take("echo mine > mine")]);
      // Where the layer has no limit of its own, what watches it sees the hole before.
      const codes = script.includes("truncate") ? [code, "sandbox_disk_full"] : [code];
      assert.ok(codes.includes((hostile as PromiseRejectedResult).reason?.code), String((hostile as PromiseRejectedResult).reason));
      assert.deepEqual((sibling as PromiseFulfilledResult<string[]>).value, ["mine"]);
      assert.deepEqual(await stray(), []);
    });

  test(`docker (${way}): an install of tens of thousands of files is a work, by the default limits`, { timeout: 300_000 }, async (t) => {
    if (!(await need(t, needed))) return;
    const install = `for p in {1..300}; do mkdir -p node_modules/$p/lib/deep/er; ln -s ../$p node_modules/$p/self
      touch node_modules/$p/{,lib/,lib/deep/,lib/deep/er/}{1..25}
      for d in . lib lib/deep lib/deep/er; do echo "// $p" > node_modules/$p/$d/index.js; done; done`;
    const look = "find node_modules -type f | wc -l; find node_modules -type l | wc -l; cat node_modules/300/lib/deep/er/index.js";
    assert.equal(await after(install, look, { limits: { disk_mb: 512 } }, backend), "31200\n300\n// 300\n");
  });

  test(`docker (${way}): the mode of a delivered file that only its mode changed reaches the grader`, limit, async (t) => {
    if (!(await need(t, needed))) return;
    const task = await taskOf({});
    const script = "chmod 640 given/check; chmod 4711 pkg/other; chmod 700 pkg";
    assert.equal(
      await after(script, "stat -c '%a %n' given/check pkg/other pkg", {}, backend),
      "640 given/check\n4711 pkg/other\n700 pkg\n",
    );
    await using kept = await temporaryLayers();
    await using sandbox = await deliveredSandbox(task, backend, owner, signal);
    await sandbox.freeze();
    const untouched = await takeWork(sandbox, task, await deliveredFiles(task), kept.folder, signal);
    assert.equal(workEvidence(untouched, task).no_change, true);
  });
}

test("docker: a layer that cannot be capped leaves no file behind", limit, async (t) => {
  if (!(await need(t, "engine-here"))) return;
  const client = await dockerClient(signal);
  const { image } = (await taskOf({})).environment;
  await using made = await unstarted(client, image as string);
  const { GraphDriver, Id } = await made.container.inspect();
  if (!isOverlay(GraphDriver.Name)) return t.skip("needs the storage driver overlay2");
  // No disk: mkfs refuses it.
  assert.equal(await capLayer(made.container, -1), false);
  const temporary = join(dirname(dirname(dirname(String((GraphDriver.Data as { UpperDir?: string }).UpperDir)))), "tmp");
  const left = (await readdir(temporary).catch(() => [])).filter((name) => name.includes(Id.slice(0, 16)));
  assert.deepEqual(left, []);
});
