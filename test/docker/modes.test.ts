/** What a task may ask of its container, and that it costs nothing of the isolation. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";
import { currentOwner } from "../../base/host/owner.ts";
import { Limits } from "../../base/schema/task.ts";
import { rootRights } from "../../sandboxes/docker/container.ts";
import { docker, dockerBackend } from "../../sandboxes/docker.ts";
import type { SandboxSpec } from "../../sandboxes/sandbox.ts";
import { missing, need } from "../needs.ts";
import { testImage } from "./test-image.ts";

const signal = AbortSignal.timeout(900_000);
const run = promisify(execFile);

async function spec(more: Partial<SandboxSpec> = {}): Promise<SandboxSpec> {
  const limits = Limits.parse({ memory_mb: 128, disk_mb: 64, pids: 64 });
  return { run_id: "modes", owner: await currentOwner(), image: null, workdir: "/work", mounts: {}, env: {}, limits, ...more };
}

for (const user of ["agent", "root"] as const) {
  for (const writable of ["workdir", "root"] as const) {
    const rights = writable === "root" ? (user === "root" ? "what package managers need" : "none for itself") : "none";
    test(`${user} with a writable ${writable} has these capabilities: ${rights}; it cannot end or trace the container`, {
      timeout: 300_000,
    }, async (t) => {
      if (!(await need(t, "docker"))) return;
      await using sandbox = await docker.create(await spec({ user, writable }), signal);
      const inside = async (script: string) => (await sandbox.exec(["sh", "-c", script])).stdout;
      const uid = user === "root" ? "0" : "1000";
      assert.equal(
        await inside('id -u; touch x && stat -c %u . x; touch ~/x /tmp/x && echo "$HOME"'),
        `${uid}\n${uid}\n${uid}\n/home/agent\n`,
      );
      const status = await inside("cat /proc/self/status");
      const given = writable === "root" ? rootRights : [];
      const sets = { CapInh: [], CapPrm: user === "root" ? given : [], CapEff: user === "root" ? given : [], CapBnd: given, CapAmb: [] };
      for (const [set, names] of Object.entries(sets)) assert.equal(maskIn(status, set), maskOf(names), set);
      assert.match(status, /^NoNewPrivs:\s+1$/m);
      const written = await inside("for path in /x /usr/bin/x /etc/x /opt/alidade/door/x; do touch $path 2>/dev/null && echo $path; done");
      assert.equal(written, user === "root" && sandbox.facts.writable === "root" ? "/x\n/usr/bin/x\n/etc/x\n" : "");
      assert.equal(await inside("mount -t tmpfs x /mnt 2>/dev/null && echo mounted; mount -o remount,rw / 2>/dev/null && echo open"), "");
      assert.equal(await inside("mknod disk b 7 0 2>/dev/null && echo device; cat /proc/1/mem 2>/dev/null | head -c 1"), "");
      await using door = await sandbox.openDoor((socket) => void socket.end("still here"));
      await sandbox.exec(["sh", "-c", "kill -9 -1; kill -9 1"]);
      const knock = `import socket; print(socket.create_connection(("127.0.0.1", ${new URL(door.url).port})).recv(100).decode())`;
      assert.equal((await sandbox.exec(["python3", "-c", knock])).stdout, "still here\n");
      await sandbox.exec(["sh", "-c", "setsid sleep 4000 >/dev/null 2>&1 &"]);
      await sandbox.freeze();
      const isPaused = (await run("docker", ["inspect", "-f", "{{.State.Paused}}", sandbox.id])).stdout === "true\n";
      // Podman lists no processes of one that is paused.
      if (!isPaused || (await missing("docker-itself")) === null)
        assert.doesNotMatch((await run("docker", ["top", sandbox.id, "-eo", "pid,args"])).stdout, /sleep 4000/);
      const closes = (await missing("engine-here")) === null && (await missing("docker-itself")) === null;
      assert.deepEqual([sandbox.facts.user, sandbox.facts.writable], [user, closes ? writable : "root"]);
    });
  }
}

/** The kernel's numbers of capabilities. */
const numbers: Record<string, number> = { CHOWN: 0, DAC_OVERRIDE: 1, FOWNER: 3, FSETID: 4, SETGID: 6, SETUID: 7 };

function maskOf(names: readonly string[]): number {
  return names.reduce((mask, name) => mask | (1 << (numbers[name] as number)), 0);
}

function maskIn(status: string, set: string): number {
  return Number.parseInt(new RegExp(`^${set}:\\s+([0-9a-f]+)$`, "m").exec(status)?.[1] ?? "", 16);
}

/** Tries each in a process of its own; prints what succeeded. */
const becoming = `
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def tried(what, act):
    if os.fork() == 0:
        try: done = act()
        except OSError: done = False
        if done is not False: print(what, flush=True)
        os._exit(0)
    os.wait()
def call(number, *arguments): return libc.syscall(ctypes.c_long(number), *map(ctypes.c_long, arguments)) == 0
setuid, setreuid, setresuid, setfsuid = (105, 113, 117, 122) if os.uname().machine == "x86_64" else (146, 145, 147, 151)
def fs(user):
    call(setfsuid, user)
    return call(setfsuid, user) if user == 0 else libc.syscall(ctypes.c_long(setfsuid), ctypes.c_long(-1)) == user & 0xffffffff
for user in (33, 32767, 65534): tried(user, lambda: os.setresuid(user, user, user))
for ours in (65530, 65531, 65532, 65533, 65533 + (1 << 32), 32768, 65535, 70000):
    tried(("setuid", ours), lambda: call(setuid, ours))
    tried(("setfsuid", ours), lambda: fs(ours))
    for at in range(2): tried(("setreuid", at, ours), lambda: call(setreuid, *[ours if one == at else -1 for one in range(2)]))
    for at in range(3): tried(("setresuid", at, ours), lambda: call(setresuid, *[ours if one == at else -1 for one in range(3)]))
def suid():
    import shutil, subprocess
    shutil.copy("/usr/bin/id", "/work/id"); os.chown("/work/id", 65533, 65533); os.chmod("/work/id", 0o6755)
    return subprocess.run(["/work/id", "-u"], capture_output=True).stdout != b"0\\n" and None
tried("a program of the guard's", suid)
`;

/** Each would end what keeps the container, or have it ended first. */
const endingTheKeeper = `
import resource, signal
tried("traced", lambda: call(101 if os.uname().machine == "x86_64" else 117, 16, 1, 0, 0))
tried("written to", lambda: os.open("/proc/1/mem", os.O_RDWR))
for name in ("oom_score_adj", "oom_adj"):
    for place in ("/proc/1", "/proc/1/task/1"):
        tried("said", lambda: open(f"{place}/{name}", "w").write("1000") and False)
tried("limited", lambda: resource.prlimit(1, resource.RLIMIT_CPU, (0, 0)) and False)
for number in range(1, 65):
    tried("signalled", lambda: [os.kill(1, number)] and False)
print(open("/proc/1/oom_score").read() == open("/proc/self/oom_score").read(), flush=True)
`;

test("root becomes any user but those of ours, and neither ends nor traces what keeps its container", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "docker"))) return;
  await using sandbox = await docker.create(await spec({ user: "root", writable: "root" }), signal);
  const { stdout, stderr } = await sandbox.exec(["python3", "-c", becoming + endingTheKeeper], { timeout_ms: 60_000 });
  assert.equal(stdout, "33\n32767\n65534\nTrue\n", stderr);
  // It starts nothing, so it lives where nothing can be started, and leaves nothing of others behind.
  await sandbox.exec(["python3", "-c", "import os\nwhile True:\n  if not os.fork(): os.execvp('sleep', ['sleep', '2'])"], {
    timeout_ms: 5_000,
  });
  assert.equal((await sandbox.exec(["true"])).exit_code, 0);
});

test("processes of users that root became end with the others, by a freeze and with their command", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "docker"))) return;
  await using sandbox = await docker.create(await spec({ user: "root", writable: "root" }), signal);
  const asOther = (seconds: number) => `import os; os.setresuid(33, 33, 33); os.execvp("sleep", ["sleep", "${seconds}"])`;
  const living = async () => (await run("docker", ["top", sandbox.id, "-eo", "pid,args"])).stdout;
  const late = await sandbox.exec(["python3", "-c", asOther(4001)], { timeout_ms: 2_000 });
  assert.equal(late.timed_out, true);
  assert.doesNotMatch(await living(), /sleep 4001/);
  await sandbox.exec(["sh", "-c", `setsid python3 -c '${asOther(4002)}' >/dev/null 2>&1 & sleep 1`]);
  assert.match(await living(), /sleep 4002/);
  await sandbox.freeze();
  await sandbox.resume?.();
  assert.doesNotMatch(await living(), /sleep 4002/);
});

test("root that breaks what commands of ours need ends its own commands, and its sandbox is still frozen", {
  timeout: 300_000,
}, async (t) => {
  if (!(await need(t, "docker-itself"))) return;
  for (const breaks of ["rm /bin/cat", "rm /etc/passwd; mkdir /etc/passwd", "rm /etc/passwd; mkfifo /etc/passwd"]) {
    await using sandbox = await docker.create(await spec({ user: "root", writable: "root" }), signal);
    // Neither of them is a failure of the machine: it would be a way to get no reward.
    assert.equal((await sandbox.exec(["sh", "-c", `${breaks}; exit 3`])).exit_code, 3, breaks);
    await sandbox.freeze();
    assert.equal((await run("docker", ["inspect", "-f", "{{.State.Paused}}", sandbox.id])).stdout, "true\n", breaks);
  }
});

test("memory is the task's limit, and the writable layer ends at the task's disk", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "engine-here"))) return;
  await using sandbox = await docker.create(await spec({ user: "root", writable: "root" }), signal);
  assert.equal(sandbox.facts.disk_limit, "overlay");
  const { stdout } = await run("docker", ["inspect", "-f", "{{.HostConfig.Memory}}", sandbox.id]);
  assert.equal(Number(stdout), 128 * 1024 * 1024);
  for (const place of ["/work", "/etc", "/usr/lib"]) {
    const { stderr, exit_code } = await sandbox.exec(["dd", "if=/dev/zero", `of=${place}/big`, "bs=1M", "count=200"]);
    assert.equal(exit_code, 1);
    assert.match(stderr, /No space left on device/);
    await sandbox.exec(["rm", `${place}/big`]);
  }
  // Files without content are counted too.
  const empty = await sandbox.exec(["python3", "-c", "import itertools\nfor i in itertools.count(): open(f'/work/{i}', 'w').close()"]);
  assert.match(empty.stderr, /No space left on device/);
  assert.equal((await sandbox.exec(["true"])).exit_code, 0);
});

test("where the layer has no limit of its own, a sandbox that writes more than its disk ends as disk full", {
  timeout: 300_000,
}, async (t) => {
  if (!(await need(t, "docker"))) return;
  await using sandbox = await dockerBackend({ disk_limit: "watchdog" }).create(await spec(), signal);
  assert.equal(sandbox.facts.disk_limit, "watchdog");
  const full = { code: "sandbox_disk_full", message: /more than limits\.disk_mb \(64\)/ };
  const write = "dd if=/dev/zero of=big bs=1M count=200 2>/dev/null";
  await assert.rejects(sandbox.exec(["sh", "-c", `${write}; exec sleep 1000`], { timeout_ms: 60_000 }), full);
  // One that ends between two looks is no way out.
  await using other = await dockerBackend({ disk_limit: "watchdog" }).create(await spec(), signal);
  await assert.rejects(other.exec(["sh", "-c", "dd if=/dev/zero of=big bs=1M count=65 2>/dev/null"]), full);
});

test("the image's workdir is used where it lies, and is the agent's", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "docker"))) return;
  const image = await testImage(
    "workdir",
    "RUN mkdir -p /testbed/src && echo one > /testbed/src/one && ln -s src/one /testbed/link && chmod 640 /testbed/src/one",
  );
  await using sandbox = await docker.create(await spec({ image, workdir: "/testbed" }), signal);
  const { stdout } = await sandbox.exec(["sh", "-c", "stat -c '%n %U %a' . src src/one; readlink link; echo two >> src/one && cat link"]);
  assert.equal(stdout, ". agent 755\nsrc agent 755\nsrc/one agent 640\nsrc/one\none\ntwo\n");
  await using other = await docker.create(await spec({ image, workdir: "/testbed", user: "root" }), signal);
  assert.equal((await other.exec(["sh", "-c", "stat -c %U src/one; cat src/one"])).stdout, "root\none\n");
});

test("an image that cannot meet a task is refused with field and value", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "docker"))) return;
  const image = await testImage("volume", "RUN mkdir /data && ln -s /data /link\nVOLUME /data");
  const make = async (more: Partial<SandboxSpec>) => docker.create(await spec({ image, ...more }), signal);
  await assert.rejects(make({ platform: "linux/s390x" }), { param: "platform", message: /environment\.platform asks for linux\/s390x/ });
  await assert.rejects(make({ workdir: "/data" }), { param: "workdir", message: /lies in the VOLUME \/data/ });
  await assert.rejects(make({ workdir: "/link" }), { param: "workdir", message: /\/link of the image is a link or a file/ });
});
