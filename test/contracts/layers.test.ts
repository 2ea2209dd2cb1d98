/** Every kind of work that an agent leaves comes out of its sandbox and into a fresh one as it is, and nothing of it is run. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { temporaryLayers } from "../../base/files/layer.ts";
import { currentOwner } from "../../base/host/owner.ts";
import { Task } from "../../base/schema/task.ts";
import { deliveredFiles, deliveredSandbox } from "../../graders/grade.ts";
import { reopenWork } from "../../graders/work/reopen-work.ts";
import { placeWork, takeWork, workEvidence } from "../../graders/work/work.ts";
import { backends } from "../../sandboxes/registry.ts";
import type { Sandbox } from "../../sandboxes/sandbox.ts";
import { testImage } from "../docker/test-image.ts";
import { folderOf } from "../fakes/kept-work.ts";
import { need } from "../needs.ts";

const signal = AbortSignal.timeout(900_000);
const owner = { run_id: "layers", owner: await currentOwner() };

/** What the task delivers: in an image, or made before by the process sandbox's agent. */
const repository = [
  "mkdir -p src/deep emptied file-to-be again link-to-be",
  "echo one > src/one; echo gone > src/gone; echo deep > src/deep/file; echo x > emptied/x; echo was > folder-to-be",
  "echo 1 > file-to-be/1; echo 1 > again/old; echo 1 > link-to-be/1; echo a > src/assumed; echo ignored.log > .gitignore",
  "head -c 5000 /dev/urandom > binary; printf '#!/bin/sh\\n' > run.sh; chmod 644 run.sh",
  "git init -q; git config user.email a@b; git config user.name a; git add -A; git commit -qm base",
].join(" && ");

/** The eight kinds that a diff by the agent's own git misses some of, then what only a layer has. */
const agent = `set -e
echo two > src/two; git add src/two; git commit -qm two
echo u > 'ünï cödé'
head -c 5000 /dev/urandom > new.bin
printf changed | dd of=binary conv=notrunc 2>/dev/null
chmod 755 run.sh; chmod 600 src/one
ln -s src/one link; ln -s /etc/passwd outside; ln -s nowhere dangling
echo log > ignored.log
git update-index --assume-unchanged src/assumed; echo b >> src/assumed
rm src/gone; rm -r emptied; mv src/deep src/moved; mkdir -p empty/inner; chmod 750 empty
rm -r file-to-be; echo file > file-to-be; rm folder-to-be; mkdir folder-to-be; echo in > folder-to-be/in
rm -r again; mkdir again; echo new > again/new; rm -r link-to-be; ln -s src link-to-be
ln new.bin second; printf 'CRLF\\r\\n' > crlf.txt; : > none; mkdir -p a/b/c; echo deep > a/b/c/d
printf '* text eol=lf ident filter=run diff=run\\n' > .gitattributes
for key in core.fsmonitor core.pager diff.external filter.run.clean filter.run.smudge diff.run.textconv core.hooksPath; do git config $key "touch $PWD/OWNED"; done
rm -f OWNED`;

const manifest =
  "find . ! -path . -printf '%p %y %m %l %s\\n' | grep -v ' d .* [0-9]*$' | sort; find . -type d -printf '%p %m\\n' | sort; find . -type f -exec sha256sum {} + | sort";

async function says(sandbox: Sandbox, script: string): Promise<string> {
  const { stdout, stderr, exit_code } = await sandbox.exec(["bash", "-c", script], { timeout_ms: 300_000 });
  assert.equal(exit_code, 0, stderr);
  return stdout;
}

for (const backend of backends)
  for (const user of backend.capabilities.users)
    test(`${backend.name}: all kinds of work of ${user} come into a fresh sandbox byte for byte`, { timeout: 300_000 }, async (t) => {
      if (backend.name === "docker" && !(await need(t, "docker"))) return;
      const { images } = backend.capabilities;
      const image = images ? await testImage("repository", `RUN mkdir /testbed && cd /testbed && ${repository}`) : null;
      const files = await folderOf([
        { path: "delivered/kept", content: Buffer.from("kept"), mode: 0o644 },
        { path: "delivered/changed", content: Buffer.from("old"), mode: 0o644 },
        { path: "delivered/removed", content: Buffer.from("x"), mode: 0o644 },
        { path: "delivered/private", content: Buffer.from("x"), mode: 0o644 },
      ]);
      const environment = { image, workdir: "/testbed", user, files };
      const task = Task.parse({
        task_id: "layers",
        instruction: "i",
        environment,
        limits: { memory_mb: 256, disk_mb: 128 },
        grader: { kind: "script", command: ["true"] },
      });
      const delivered = await deliveredFiles(task);
      await using kept = await temporaryLayers();
      const { work, left } = await (async () => {
        await using sandbox = await deliveredSandbox(task, backend, owner, signal);
        if (!images) await says(sandbox, repository);
        await says(sandbox, agent);
        await says(sandbox, "echo new > delivered/changed; rm delivered/removed; chmod 640 delivered/private");
        const left = await says(sandbox, manifest);
        await sandbox.freeze();
        const work = await takeWork(sandbox, task, delivered, kept.folder, signal);
        assert.doesNotMatch(await says(sandbox, "ls"), /OWNED/, "nothing of the agent's was run");
        return { work, left };
      })();
      await using fresh = await deliveredSandbox(task, backend, owner, signal);
      await placeWork(fresh, task, work, {}, signal);
      assert.equal(await says(fresh, manifest), left);
      const reopened = await reopenWork(kept.folder, work.sha256, () => deliveredSandbox(task, backend, owner, signal), signal);
      assert.deepEqual(reopened, work, "a kept work is opened again as it was taken out");
      const evidence = workEvidence(work, task);
      assert.deepEqual(evidence.modified.includes("delivered/changed"), true);
      assert.deepEqual(evidence.modified.includes("delivered/private"), true, "its mode alone is another one");
      assert.deepEqual(evidence.deleted.includes("delivered/removed"), true);
      assert.equal(
        work.changes.some(({ path }) => path === "/testbed/delivered/kept"),
        false,
        "what is as it was delivered is no change",
      );
      if (images) {
        assert.deepEqual(evidence.deleted.filter((path) => !path.startsWith("delivered/")).sort(), [
          "again/old",
          "emptied",
          "src/deep",
          "src/gone",
        ]);
        assert.ok(["binary", "run.sh", "src/one", "src/assumed"].every((path) => evidence.modified.includes(path)));
      }
    });

test("docker: what changed outside of the workdir crosses where a task says so, and HOME's files where it names them", {
  timeout: 300_000,
}, async (t) => {
  if (!(await need(t, "docker"))) return;
  const docker = backends.find(({ name }) => name === "docker") as (typeof backends)[number];
  const taskOf = (work: unknown) =>
    Task.parse({
      task_id: "outside",
      instruction: "i",
      environment: { user: "root", writable: "root", work },
      limits: { memory_mb: 256, disk_mb: 128 },
      grader: { kind: "script", command: ["true"] },
    });
  const script =
    "echo in > in; echo motd > /etc/motd; mkdir -p /opt/tool/bin; echo tool > /opt/tool/bin/tool; rm -r /usr/share/perl5; echo h > ~/h; echo t > /tmp/t";
  await using sandbox = await deliveredSandbox(taskOf("workdir"), docker, owner, signal);
  await says(sandbox, script);
  await sandbox.freeze();
  await using kept = await temporaryLayers();
  const pathsOf = async (work: unknown) =>
    (await takeWork(sandbox, taskOf(work), [], kept.folder, signal)).changes
      .filter(({ type }) => type !== "folder")
      .map(({ path }) => path);
  assert.deepEqual(await pathsOf("workdir"), ["/work/in"]);
  assert.deepEqual(await pathsOf("layer"), ["/etc/motd", "/opt/tool/bin/tool", "/usr/share/perl5", "/work/in"]);
  assert.deepEqual(await pathsOf(["/opt", "/home/agent"]), ["/home/agent/h", "/opt/tool/bin/tool"]);
  const layer = await takeWork(sandbox, taskOf("layer"), [], kept.folder, signal);
  await using fresh = await deliveredSandbox(taskOf("layer"), docker, owner, signal);
  await placeWork(fresh, taskOf("layer"), layer, {}, signal);
  assert.equal(await says(fresh, "cat in /etc/motd /opt/tool/bin/tool; ls -d /usr/share/perl5 2>/dev/null || true"), "in\nmotd\ntool\n");
});

for (const backend of backends)
  test(`${backend.name}: bombs in a layer are refused as the policy's doing`, { timeout: 300_000 }, async (t) => {
    if (backend.name === "docker" && !(await need(t, "docker"))) return;
    const task = Task.parse({
      task_id: "bombs",
      instruction: "i",
      limits: { memory_mb: 256, disk_mb: 1024 },
      grader: { kind: "script", command: ["true"] },
    });
    await using kept = await temporaryLayers();
    for (const [bomb, code] of [
      ["p=$(printf 'd/%.0s' {1..100}); mkdir -p $p; echo > $p/file", "output_too_large"],
      ["n=$(printf 'n%.0s' {1..250}); for i in {1..20}; do mkdir $n && cd -P $n; done; echo > file", "output_too_large"],
      ["seq 1 210000 | xargs touch", "output_too_large"],
      ["truncate -s 3G hole", "output_too_large"],
      ["seq 3000 | xargs touch; truncate -s 100G z", "output_too_large"],
      ["seq 3000 | xargs touch; ln -s $'a\\xff' z", "output_unreadable"],
      ["printf x > $'\\xff\\xfe'", "output_unreadable"],
    ] as const) {
      await using sandbox = await deliveredSandbox(task, backend, owner, signal);
      await says(sandbox, bomb);
      await sandbox.freeze();
      await assert.rejects(takeWork(sandbox, task, [], kept.folder, signal), { code }, bomb);
    }
  });
