/** What a policy or an operator can do to a container, and how it is told. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { AlidadeError } from "../../base/errors.ts";
import { currentOwner } from "../../base/host/owner.ts";
import { Limits } from "../../base/schema/task.ts";
import { doorId } from "../../sandboxes/docker/container.ts";
import { ensureBaseImage } from "../../sandboxes/docker/images/made/base-image.ts";
import { docker, dockerBackend } from "../../sandboxes/docker.ts";
import { doorInside } from "../../sandboxes/door/door-kind.ts";
import type { SandboxSpec } from "../../sandboxes/sandbox.ts";
import { WarmPool } from "../../sandboxes/warm-pool.ts";
import { until } from "../fakes/machine/until.ts";
import { need } from "../needs.ts";

const signal = AbortSignal.timeout(900_000);
const run = promisify(execFile);

async function spec(limits: Partial<Limits> = {}, more: Partial<SandboxSpec> = {}): Promise<SandboxSpec> {
  const small = Limits.parse({ memory_mb: 128, disk_mb: 64, pids: 64, ...limits });
  return { run_id: "failures", owner: await currentOwner(), image: null, workdir: "/work", mounts: {}, env: {}, limits: small, ...more };
}

async function untilRunning(id: string, words: string): Promise<void> {
  for (let look = 0; look < 200; look += 1) {
    if ((await run("docker", ["top", id, "-eo", "pid,args"])).stdout.includes(words)) return;
    await sleep(50);
  }
  assert.fail(`${words} never ran`);
}

function has(code: AlidadeError["code"], words: RegExp): (error: unknown) => boolean {
  return (error) => {
    assert.ok(error instanceof AlidadeError, String(error));
    assert.equal(error.code, code);
    assert.match(error.message, words);
    return true;
  };
}

test("a container that is killed from outside ends its command with sandbox_died", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "docker"))) return;
  await using sandbox = await docker.create(await spec(), signal);
  const running = sandbox.exec(["sleep", "1000"]);
  const told = assert.rejects(running, has("sandbox_died", /sleep 1000.*exit code 137/));
  await untilRunning(sandbox.id, "sleep 1000");
  await run("docker", ["kill", sandbox.id]);
  await told;
  await assert.rejects(sandbox.exec(["true"]), has("sandbox_died", /not running/));
  // The engine itself would take the files, and lose them.
  await assert.rejects(sandbox.writeFiles([{ path: "x", content: Buffer.from("x"), mode: 0o644 }]), has("sandbox_died", /written/));
  await assert.rejects(sandbox.readFiles("/work"), has("sandbox_died", /read/));
});

test("a warm container that was killed, or whose image's name names another one by now, is not as new", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "docker-itself"))) return;
  const image = `alidade-test/moved:${process.pid}`;
  const base = await ensureBaseImage({ signal });
  await run("docker", ["tag", base, image]);
  await using pool = new WarmPool(docker, { sandboxes: 1, seconds: 60 });
  const wanted = await spec({}, { image });
  const expected = pool.expect(wanted);
  await until(() => pool.counters.ready === 1);
  await using warm = await expected.create(wanted, signal);
  try {
    assert.equal(await warm.isAsNew?.(), true);
    await run("docker", ["commit", warm.id, image]);
    assert.equal(await warm.isAsNew?.(), false);
    await run("docker", ["rmi", image]);
    assert.equal(await warm.isAsNew?.(), false);
    await run("docker", ["tag", base, image]);
    assert.equal(await warm.isAsNew?.(), true);
    await run("docker", ["kill", warm.id]);
    assert.equal(await warm.isAsNew?.(), false);
  } finally {
    await run("docker", ["rmi", image]);
  }
});

test("a container that is removed from outside ends its command with sandbox_died", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "docker"))) return;
  const run_id = `removed${process.pid}`;
  const sandbox = await docker.create(await spec({}, { run_id }), signal);
  const told = assert.rejects(sandbox.exec(["sleep", "1000"]), has("sandbox_died", /ended while "sleep 1000" ran/));
  await untilRunning(sandbox.id, "sleep 1000");
  await run("docker", ["rm", "-f", sandbox.id]);
  await told;
  await assert.rejects(sandbox.readFiles("/work"), has("sandbox_died", /removed/));
  await sandbox[Symbol.asyncDispose]();
  // `docker rm` leaves anonymous volumes behind; disposing does not.
  assert.equal((await run("docker", ["volume", "ls", "-q", "--filter", `label=alidade.run=${run_id}`])).stdout, "");
});

test("a command that takes all memory is told as out of memory, and the sandbox goes on", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "docker"))) return;
  await using sandbox = await docker.create(await spec(), signal);
  const hog = ["python3", "-c", "x = [bytearray(1 << 20) for _ in range(2000)]"];
  const first = await sandbox.exec(hog, { timeout_ms: 30_000 });
  assert.deepEqual({ exit: first.exit_code, oom: first.out_of_memory }, { exit: 137, oom: true });
  // A child's end is seen too, and an ordinary failure after it is not mistaken for one.
  const child = await sandbox.exec(["sh", "-c", `${hog[0]} -c '${hog[2]}'; exit 3`], { timeout_ms: 30_000 });
  assert.deepEqual({ exit: child.exit_code, oom: child.out_of_memory }, { exit: 3, oom: true });
  const plain = await sandbox.exec(["false"]);
  assert.deepEqual({ exit: plain.exit_code, oom: plain.out_of_memory }, { exit: 1, oom: false });
});

test("a full disk is told in words, and there is room again after removing", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "engine-here"))) return;
  await using sandbox = await docker.create(await spec(), signal);
  const { exit_code, stderr, out_of_memory } = await sandbox.exec(["dd", "if=/dev/zero", "of=big", "bs=1M", "count=200"]);
  assert.deepEqual({ exit_code, out_of_memory }, { exit_code: 1, out_of_memory: false });
  assert.match(stderr, /No space left on device/);
  const large = { path: "more", content: Buffer.alloc(1_000_000), mode: 0o644 };
  await assert.rejects(sandbox.writeFiles([large]), has("sandbox_disk_full", /disk_mb/));
  assert.equal((await sandbox.exec(["rm", "-f", "big", "more"])).exit_code, 0);
  await sandbox.writeFiles([large]);
});

test("a policy that writes all that it can, files without content too, does not end its container", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "engine-here"))) return;
  await using sandbox = await docker.create(await spec({ memory_mb: 48 }), signal);
  const fill = `import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
while True:
  segment = libc.shmget(0, 1 << 20, 0o600)
  if segment < 0: break
  libc.memset(ctypes.c_void_p(libc.shmat(segment, None, 0)), 1, 1 << 20)
for place in ("/work", "/home/agent", "/tmp", "/run", "/var/tmp", "/dev/shm"):
  try:
    while True: os.symlink("x" * 120, place + "/" + os.urandom(120).hex())
  except OSError: pass
  try:
    for name in os.listdir(place)[:2]: os.unlink(place + "/" + name)
    with open(place + "/full", "wb", 0) as file:
      while True: file.write(bytes(1 << 16))
  except OSError: pass
print("full")`;
  const { stdout, stderr } = await sandbox.exec(["python3", "-c", fill], { timeout_ms: 60_000 });
  assert.equal(stdout, "full\n", stderr);
  assert.equal((await sandbox.exec(["true"])).exit_code, 0);
});

test("a file that is all hole is not read to its end, also where it is left out", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "engine-here"))) return; // a watchdog ends it before
  await using sandbox = await docker.create(await spec(), signal);
  await sandbox.exec([
    "sh",
    "-c",
    "mkdir .git; for size in 6E 15T 3T 16G; do truncate -s $size .git/hole && break; done; echo kept > kept",
  ]);
  const exclude = ["**/.git/**"];
  await assert.rejects(sandbox.readFiles("/work", { exclude }), has("output_too_large", /more than the \d+ bytes of its disk/));
  await sandbox.exec(["sh", "-c", "rm .git/hole; head -c 20000000 /dev/zero > .git/full"]);
  assert.deepEqual(
    (await sandbox.readFiles("/work", { exclude })).map((file) => file.path),
    ["kept"],
  );
});

test("a fork bomb stays within its limit and ends with its time-out", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "docker"))) return;
  await using sandbox = await docker.create(await spec(), signal);
  const bomb = ["sh", "-c", "bomb() { bomb | bomb & }; (bomb) & exec sleep 1000"]; // beside it: a shell that cannot fork ends
  const result = await sandbox.exec(bomb, { timeout_ms: 2_000, max_output_bytes: 1_000 });
  assert.equal(result.timed_out, true);
  const after = await sandbox.exec(["sh", "-c", "ps -A -o args | grep -c '[b]omb'"]);
  assert.equal(after.stdout, "0\n");
});

test("a process that kills all that is started is a result, and nothing of it goes on while its work is read", {
  timeout: 300_000,
}, async (t) => {
  if (!(await need(t, "docker"))) return;
  await using sandbox = await docker.create(await spec(), signal);
  const killer = `import os
if os.fork(): os._exit(0)
os.setsid()
while True:
  try: os.kill(-1, 9)
  except ProcessLookupError: pass
  with open("ticks", "a") as file: file.write("x")`;
  await sandbox.exec(["python3", "-c", killer]);
  assert.deepEqual((await sandbox.exec(["sleep", "1000"], { timeout_ms: 30_000 })).exit_code, 137);
  await sandbox.freeze();
  const first = await sandbox.readFiles("/work");
  assert.equal(first[0]?.path, "ticks");
  assert.deepEqual(await sandbox.readFiles("/work"), first);
});

test("a command may kill everything it can: the sandbox stays", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "docker"))) return;
  await using sandbox = await docker.create(await spec(), signal);
  await using door = await sandbox.openDoor((socket) => void socket.end("still here"));
  for (const user of ["agent", "root"] as const) await sandbox.exec(["sh", "-c", "kill -9 -1; kill -9 1"], { user });
  const script = `import socket; print(socket.create_connection(("127.0.0.1", ${new URL(door.url).port})).recv(100).decode())`;
  assert.equal((await sandbox.exec(["python3", "-c", script])).stdout, "still here\n");
});

test("the sandbox stays where no process can be started any more, whatever was killed in it", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "docker-itself"))) return;
  await using sandbox = await docker.create(await spec(), signal);
  const killing = sandbox.exec(["sh", "-c", "until [ -e go ]; do :; done; kill -9 -1"], { user: "root" });
  killing.catch(() => {});
  await untilRunning(sandbox.id, "until [ -e go ]");
  await run("docker", ["update", "--pids-limit", "1", sandbox.id]);
  await sandbox.writeFiles([{ path: "go", content: Buffer.alloc(0), mode: 0o644 }]);
  await killing;
  await run("docker", ["update", "--pids-limit", "64", sandbox.id]);
  assert.equal((await sandbox.exec(["true"])).exit_code, 0);
});

test("processes whose parent ended before them leave nothing behind when they end", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "docker"))) return;
  await using sandbox = await docker.create(await spec(), signal);
  await sandbox.exec(["python3", "-c", "import os\nfor _ in range(20):\n  if not os.fork(): os.execvp('sleep', ['sleep', '0.2'])"]);
  await until(async () => !/sleep 0\.2|defunct/.test((await sandbox.exec(["ps", "-A", "-o", "args="])).stdout));
});

test("the door opens again after its forwarder was killed", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "docker"))) return;
  await using sandbox = await dockerBackend({ door: "forwarder" }).create(await spec(), signal);
  await using _door = await sandbox.openDoor((socket) => void socket.end("still here"));
  const top = await run("docker", ["top", sandbox.id, "-eo", "pid,args"]);
  assert.ok(top.stdout.includes(doorInside), top.stdout);
  // By its user, from inside: the engine's process ids need not be this machine's.
  await run("docker", ["exec", "-u", String(doorId), sandbox.id, "sh", "-c", "kill -9 -1"]);
  const script = `import socket, time
for _ in range(100):
    try:
        print(socket.create_connection(("127.0.0.1", 4000)).recv(100).decode()); break
    except OSError: time.sleep(0.1)`;
  assert.equal((await sandbox.exec(["python3", "-c", script])).stdout, "still here\n");
});

test("an image that is not there is named, with how to get it", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "docker"))) return;
  await assert.rejects(
    docker.create(await spec({}, { image: "alidade/none:1" }), signal),
    has("image_pull_failed", /alidade\/none:1.*docker pull.*docker build/),
  );
});

test("a mount whose folder is not on the host leaves no container behind", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "docker"))) return;
  const run_id = `missingmount${process.pid}`;
  await assert.rejects(
    docker.create(await spec({}, { run_id, mounts: { "/opt/x": "/nonexistent/folder" } }), signal),
    has("sandbox_unavailable", /nonexistent/),
  );
  const { stdout } = await run("docker", ["ps", "-aq", "--filter", `label=alidade.run=${run_id}`]);
  assert.equal(stdout, "");
});

test("what an image has in the workdir is there, and belongs to the agent", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "docker"))) return;
  await using sandbox = await docker.create(await spec({}, { workdir: "/usr/share/base-passwd" }), signal);
  const { stdout } = await sandbox.exec(["sh", "-c", "stat -c '%U %n' passwd.master; echo more >> passwd.master && echo written"]);
  assert.equal(stdout, "agent passwd.master\nwritten\n");
});

test("facts name the image by its content and list its packages", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "docker"))) return;
  await using sandbox = await docker.create(await spec(), signal);
  assert.match(sandbox.facts.image_digest ?? "", /^sha256:[0-9a-f]{64}$/);
  assert.match(sandbox.facts.image ?? "", /^alidade\/base:/);
  // biome-ignore lint/suspicious/noTemplateCurlyInString: dpkg-query's own format
  const format = "${Package} ${Version}\n";
  const listed = (await sandbox.exec(["dpkg-query", "-W", "-f", format])).stdout.trim().split("\n").sort();
  assert.deepEqual(sandbox.facts.packages, listed);
});
