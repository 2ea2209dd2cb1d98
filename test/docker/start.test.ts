/** What an image starts by itself runs in its sandbox, and is ready when the sandbox is handed out. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { AlidadeError } from "../../base/errors.ts";
import { currentOwner } from "../../base/host/owner.ts";
import { Environment, Limits } from "../../base/schema/task.ts";
import { startsNothing } from "../../sandboxes/docker/confined/entrypoint.ts";
import { docker, dockerBackend } from "../../sandboxes/docker.ts";
import { localProcess } from "../../sandboxes/process.ts";
import type { SandboxSpec } from "../../sandboxes/sandbox.ts";
import { need } from "../needs.ts";
import { testImage } from "./test-image.ts";

const signal = AbortSignal.timeout(900_000);
const run = promisify(execFile);
const limits = Limits.parse({ memory_mb: 256, disk_mb: 64 });

async function spec(image: string | null, healthcheck?: unknown, run_id = "start"): Promise<SandboxSpec> {
  const asked = Environment.parse({ healthcheck: healthcheck ?? null });
  const env = { GREETING: "hello" };
  return { run_id, owner: await currentOwner(), image, workdir: "/work", mounts: {}, env, limits, healthcheck: asked.healthcheck };
}

/** A server that takes a moment, as databases do; then what was asked for. */
const service = testLines(
  "service",
  `#!/bin/sh
echo starting
(sleep 0.5; cd /tmp && python3 -m http.server 8000 --bind 127.0.0.1 >/dev/null 2>&1) &
echo "$GREETING $(id -u) $PWD" >/tmp/begun
exec "$@"`,
  `WORKDIR /srv\nENTRYPOINT ["/start"]`,
);
const answers = "import urllib.request as r; r.urlopen('http://127.0.0.1:8000')";

function testLines(name: string, script: string, lines: string): () => Promise<string> {
  const encoded = Buffer.from(`${script}\n`).toString("base64");
  return () => testImage(name, `RUN echo ${encoded} | base64 -d >/start && chmod 755 /start\n${lines}`);
}

async function refusal(t: TestContext, made: Promise<AsyncDisposable>): Promise<string> {
  const error = await made.then(
    (sandbox) => t.after(() => sandbox[Symbol.asyncDispose]()),
    (failure: unknown) => failure,
  );
  assert.ok(error instanceof AlidadeError, "it is refused");
  assert.deepEqual([error.code, error.owner, error.param], ["sandbox_unhealthy", "infrastructure", "environment.healthcheck"]);
  return error.message;
}

test("an image's ENTRYPOINT runs as the sandbox's user, and the task's healthcheck is awaited", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "docker"))) return;
  const healthcheck = { command: ["python3", "-c", answers], interval_seconds: 0.2, retries: 100 };
  await using sandbox = await docker.create(await spec(await service(), healthcheck), signal);
  assert.equal((await sandbox.exec(["python3", "-c", answers])).exit_code, 0);
  assert.equal((await sandbox.exec(["cat", "/tmp/begun"])).stdout, "hello 1000 /srv\n");
  await sandbox.freeze();
  assert.doesNotMatch((await run("docker", ["top", sandbox.id, "-eo", "pid,args"])).stdout, /http\.server|2147483647/);
});

/** As many add the names that their programs ask for. */
const naming = testLines(
  "naming",
  `#!/bin/sh
set -e
echo "127.0.0.1 backend.local" >>/etc/hosts
sed -i 's/backend/database/' /etc/hosts 2>/dev/null || { sed 's/backend/database/' /etc/hosts >/tmp/h; cat /tmp/h >/etc/hosts; }
exec "$@"`,
  `ENTRYPOINT ["/start"]`,
);

test("an ENTRYPOINT of root that writes to /etc/hosts starts, and what stands there is the sandbox's own and no work", {
  timeout: 300_000,
}, async (t) => {
  if (!(await need(t, "docker"))) return;
  const asked = { ...(await spec(await naming())), user: "root", writable: "root" } as const;
  for (const disk_limit of ["overlay", "watchdog"] as const) {
    await using sandbox = await dockerBackend({ disk_limit }).create(asked, signal);
    const inside = async (command: string) => (await sandbox.exec(["sh", "-c", command])).stdout;
    assert.equal(await inside("cat /etc/hosts"), "127.0.0.1\tlocalhost sandbox\n127.0.0.1 database.local\n");
    const ask = "import socket; print(socket.gethostbyname('database.local'), socket.gethostbyname('localhost'))";
    assert.equal((await sandbox.exec(["python3", "-c", ask])).stdout, "127.0.0.1 127.0.0.1\n");
    assert.equal(await inside("grep -c hosts /proc/self/mounts; stat -c '%U %a' /etc/hosts"), "0\nroot 644\n");
    // Another one has nothing of it.
    await using sibling = await dockerBackend({ disk_limit }).create({ ...asked, image: null }, signal);
    assert.equal((await sibling.exec(["cat", "/etc/hosts"])).stdout, "127.0.0.1\tlocalhost sandbox\n");
    await sandbox.freeze();
    const changed: string[] = [];
    // Folders in which something is mounted or written are told in any case.
    for await (const { path, type } of sandbox.changes(["/"], { signal })) if (type !== "folder") changed.push(path);
    assert.deepEqual(changed, []);
    await using other = await dockerBackend({ disk_limit }).create({ ...asked, image: null }, signal);
    await other.exec(["sh", "-c", "echo 'more:x:77:77::/:/bin/sh' >>/etc/passwd"]);
    await other.freeze();
    const users: string[] = [];
    for await (const { path, type } of other.changes(["/"], { signal })) if (type !== "folder") users.push(path);
    assert.deepEqual(users, ["/etc/passwd"], "users that were added are a part of the work");
  }
});

test("root fills its own disk by its files of /etc and nothing else, and the engine's stay closed", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "docker"))) return;
  await using sandbox = await docker.create({ ...(await spec(null)), user: "root", writable: "root" }, signal);
  const inside = async (command: string) => (await sandbox.exec(["sh", "-c", command])).stdout.trim();
  // The file system of its layer has two megabytes of its own.
  const most = (limits.disk_mb + 2) * 1024 * 1024;
  if (sandbox.facts.disk_limit === "overlay")
    assert.ok(Number(await inside("cat /dev/zero >>/etc/hosts 2>/dev/null; stat -c %s /etc/hosts")) <= most);
  for (const path of ["/etc/hostname", "/etc/resolv.conf"]) assert.equal(await inside(`: 2>/dev/null >>${path} && echo written`), "", path);
  await using agent = await docker.create({ ...(await spec(null)), writable: "root" }, signal);
  for (const path of ["/etc/hosts", "/etc/passwd", "/etc/group"])
    assert.equal((await agent.exec(["sh", "-c", `: 2>/dev/null >>${path} && echo written`])).stdout, "", path);
});

test("an image's own HEALTHCHECK is awaited where the task names none", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "docker"))) return;
  const image = await testImage(
    "health",
    `ENTRYPOINT ["sh", "-c", "sleep 0.5; touch /tmp/ready; sleep 1000"]\nHEALTHCHECK CMD test -f /tmp/ready`,
  );
  await using sandbox = await docker.create(await spec(image), signal);
  assert.equal((await sandbox.exec(["ls", "/tmp"])).stdout, "ready\n");
});

test("a healthcheck that fails, and a start that ends, are failures that say which command and what it said", {
  timeout: 300_000,
}, async (t) => {
  if (!(await need(t, "docker"))) return;
  const run_id = `unhealthy${process.pid}`;
  const healthcheck = { command: "echo no database; exit 3", interval_seconds: 0.1, retries: 1, start_period_seconds: 0.2 };
  assert.match(
    await refusal(t, docker.create(await spec(await service(), healthcheck, run_id), signal)),
    /not ready after 0\.3 s: the healthcheck "sh -c echo no database; exit 3" ended with 3\. .*: no database The image's ENTRYPOINT "\/start" was started\. .*: starting/s,
  );
  const broken = await testImage("broken", `ENTRYPOINT ["sh", "-c", "echo cannot bind >&2; exit 7"]`);
  assert.match(
    await refusal(t, docker.create(await spec(broken, undefined, run_id), signal)),
    /ENTRYPOINT "sh -c echo cannot bind >&2; exit 7" ended with 7\. .*: cannot bind .*healthcheck: none/s,
  );
  assert.equal((await run("docker", ["ps", "-aq", "--filter", `label=alidade.run=${run_id}`])).stdout, "", "nothing is left of them");
  await using spared = await docker.create(await spec(broken, "none"), signal);
  assert.equal((await spared.exec(["true"])).exit_code, 0);
});

test("a healthcheck is awaited in a process sandbox too", async (t) => {
  const failing = { command: "echo no database; exit 3", interval_seconds: 0.01, retries: 1 };
  assert.match(await refusal(t, localProcess.create(await spec(null, failing), signal)), /"sh -c echo no database; exit 3" ended with 3/);
  const slow = { command: 'echo x >>"$HOME/tries"; test "$(wc -l <"$HOME/tries")" -ge 3', interval_seconds: 0.01, retries: 10_000 };
  await using sandbox = await localProcess.create(await spec(null, slow), signal);
  assert.equal((await sandbox.exec(["sh", "-c", 'wc -l <"$HOME/tries"'])).stdout.trim(), "3");
});

test("a bare shell is no start", () => {
  for (const shell of [[], ["/bin/bash"], ["sh"], ["bash", "-l"]]) assert.ok(startsNothing(shell), shell.join(" "));
  for (const start of [["/start"], ["bash", "-c", "start"], ["sh", "start.sh"], ["tini", "--"]])
    assert.ok(!startsNothing(start), start.join(" "));
});
