/** What a task's set-up writes is no work of the agent's, and stands as it was in the sandbox that grades. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { openLayer, temporaryLayers } from "../../base/files/layer.ts";
import { currentOwner } from "../../base/host/owner.ts";
import { Task } from "../../base/schema/task.ts";
import { deliveredFiles, deliveredSandbox } from "../../graders/grade.ts";
import { keepSetUp } from "../../graders/work/set-up-layer.ts";
import { placeWork, takeWork, workEvidence } from "../../graders/work/work.ts";
import { dockerBackend } from "../../sandboxes/docker.ts";
import { backends } from "../../sandboxes/registry.ts";
import type { Sandbox } from "../../sandboxes/sandbox.ts";
import { testImage } from "../docker/test-image.ts";
import { folderOf } from "../fakes/kept-work.ts";
import { need } from "../needs.ts";

const signal = AbortSignal.timeout(900_000);
const owner = { run_id: "set-up", owner: await currentOwner() };

const inImage = "mkdir lib && echo i > restored && echo r > removed && echo l > lib/l && echo k > kept";

/** No two runs of it leave the same. `.stash` has the image's own files, with their times. */
const setUp = `set -e
test -e kept || { ${inImage}; }
mkdir -p node_modules/a node_modules/b .stash; cp -a restored removed lib .stash; echo set > restored; echo set > lib/l; rm removed
head -c 300000 /dev/urandom > node_modules/a/large; head -c 100 /dev/urandom > node_modules/a/small; ln node_modules/a/large node_modules/a/linked
for n in 1 2 3; do echo $n > node_modules/b/$n; done; ln -s a node_modules/link; chmod 700 node_modules/b
echo set >> delivered/changed; echo set >> delivered/undone; rm delivered/removed
echo tool > ~/tool; echo t > /tmp/t`;

const agent = `set -e
echo more >> node_modules/a/small; printf changed | dd of=node_modules/a/large conv=notrunc 2>/dev/null
rm -r node_modules/b; rm node_modules/link; ln kept hard; cp -a .stash/restored restored; cp -a .stash/removed removed; cp -a .stash/lib/l lib/l
printf 'old' > delivered/undone; echo agent >> delivered/changed; echo back > delivered/removed; echo new > new; chmod 600 kept`;

const manifest = "find . ! -path . -printf '%p %y %m %l\\n' | sort; find . -type f -exec sha256sum {} + | sort";
const manifestWithLinks = `${manifest}; stat -c %h node_modules/a/*`;

async function says(sandbox: Sandbox, script: string): Promise<string> {
  const { stdout, stderr, exit_code } = await sandbox.exec(["bash", "-c", script], { timeout_ms: 60_000 });
  assert.equal(exit_code, 0, stderr);
  return stdout;
}

const kinds = [...backends.map((backend) => ({ backend, by: "" })), { backend: dockerBackend({ layer: "engine" }), by: " by the engine" }];

for (const { backend, by } of kinds)
  test(`${backend.name}${by}: the work is the difference to what the set-up left`, { timeout: 300_000 }, async (t) => {
    if (backend.name === "docker" && !(await need(t, by === "" ? "docker" : "docker-itself"))) return;
    const image = backend.capabilities.images ? await testImage("set-up", `RUN mkdir /testbed && cd /testbed && ${inImage}`) : null;
    const files = await folderOf(
      ["kept", "changed", "undone", "removed"].map((name) => ({ path: `delivered/${name}`, content: Buffer.from("old"), mode: 0o644 })),
    );
    const task = Task.parse({
      task_id: "set-up",
      instruction: "i",
      environment: { image, workdir: "/testbed", files, setup: { command: ["bash", "-c", setUp] } },
      limits: { memory_mb: 256, disk_mb: 128 },
      grader: { kind: "script", command: ["true"] },
    });
    const delivered = await deliveredFiles(task);
    await using kept = await temporaryLayers();
    await using sandbox = await deliveredSandbox(task, backend, owner, signal);
    const setup = await keepSetUp(sandbox, task, delivered, kept.folder, signal);
    assert.ok(setup);
    assert.deepEqual(await openLayer(kept.folder, setup.sha256).then(({ sha256 }) => sha256), setup.sha256);
    const untouched = await takeWork(sandbox, task, delivered, kept.folder, signal, setup);
    assert.deepEqual(untouched.changes, [], "a set-up alone is no work");
    assert.equal(workEvidence(untouched, task).no_change, true);

    await says(sandbox, agent);
    const look = image === null ? manifest : manifestWithLinks;
    const left = await says(sandbox, look);
    await sandbox.freeze();
    const work = await takeWork(sandbox, task, delivered, kept.folder, signal, setup);
    await using fresh = await deliveredSandbox(task, backend, { ...owner, setUp: setup }, signal);
    assert.equal(await says(fresh, "cat ~/tool"), "tool\n", "HOME is as the set-up left it");
    await placeWork(fresh, task, work, {}, signal);
    assert.equal(await says(fresh, look), left);

    const { added, modified, deleted } = workEvidence(work, task);
    assert.deepEqual(added, ["delivered/removed", "hard", "new", "removed"]);
    assert.deepEqual(deleted, ["node_modules/b", "node_modules/link"]);
    const asIs = ["node_modules/a/large", "node_modules/a/linked", "node_modules/a/small"];
    assert.deepEqual(modified, ["delivered/changed", "delivered/undone", "kept", "lib/l", ...asIs, "restored"]);
  });
