/** What a container may take of the kernel that it shares with its siblings and with the host, and what it sees of it. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { currentOwner } from "../../base/host/owner.ts";
import { Limits } from "../../base/schema/task.ts";
import { maskedPaths } from "../../sandboxes/docker/confined/masked-paths.ts";
import { docker } from "../../sandboxes/docker.ts";
import type { Sandbox, SandboxSpec } from "../../sandboxes/sandbox.ts";
import { need } from "../needs.ts";
import { testImage } from "./test-image.ts";

const signal = AbortSignal.timeout(900_000);

async function sandboxOf(more: Partial<SandboxSpec> = {}): Promise<Sandbox> {
  const limits = Limits.parse({ memory_mb: 256, disk_mb: 64 });
  const spec = { run_id: "kernel", owner: await currentOwner(), image: null, workdir: "/work", mounts: {}, env: {}, limits, ...more };
  return docker.create(spec, signal);
}

async function python(sandbox: Sandbox, script: string): Promise<string> {
  const { stdout, stderr, exit_code } = await sandbox.exec(["python3", "-c", `${prelude}${script}`], { timeout_ms: 60_000 });
  assert.equal(exit_code, 0, stderr);
  return stdout;
}

/** `call(number, ...)`: what a system call returns, or the name of its error. */
const prelude = `
import ctypes, errno, os, platform, socket, struct, subprocess, multiprocessing
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    result = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(one) if isinstance(one, int) else one for one in arguments])
    return result if result >= 0 else errno.errorcode[ctypes.get_errno()]
def take(once, most):
    taken = 0
    while taken < most and isinstance(once(), int): taken += 1
    return taken
x64 = platform.machine() == "x86_64"
inotify, setup = (294, 206) if x64 else (26, 0)
`;

/** Takes all that it gets, keeps it, says how much that was, and waits. */
const greedy = `
import time
context = lambda: call(setup, 1000, ctypes.byref(ctypes.c_ulong(0)))
queue = lambda: call(240 if x64 else 180, str(os.urandom(4).hex()).encode(), os.O_CREAT | os.O_RDWR, 0o600, None)
def file():
    try: return os.open("/dev/mqueue/" + os.urandom(4).hex(), os.O_CREAT | os.O_RDWR)
    except OSError as error: return str(error)
print(take(lambda: call(inotify, 0), 5000), take(context, 500), take(queue, 50), take(file, 50), take(lambda: call(425, 8, ctypes.create_string_buffer(256)), 5), flush=True)
`;

test("one sandbox takes none of the watches, contexts, queues and rings that its siblings share with it", {
  timeout: 300_000,
}, async (t) => {
  if (!(await need(t, "docker"))) return;
  await using greedySandbox = await sandboxOf();
  await using sibling = await sandboxOf({ inotify: true });
  await greedySandbox.exec(["mkfifo", "/tmp/said"]);
  void python(greedySandbox, `import sys; sys.stdout = open("/tmp/said", "w")\n${greedy}\ntime.sleep(1000)`).catch(() => {});
  assert.equal((await greedySandbox.exec(["head", "-1", "/tmp/said"], { timeout_ms: 30_000 })).stdout, "0 0 0 0 0\n");
  assert.equal(await python(sibling, "print(take(lambda: call(inotify, 0), 1))"), "1\n", "a task that asks for watches has them");
  assert.equal(greedySandbox.facts.seccomp, "own");
});

/** Also as 32-bit programs ask for it: every argument in one place in memory. */
const knock = `
def opens(family):
    try: socket.socket(family, socket.SOCK_STREAM).close()
    except OSError as error: return error.errno in (errno.EPERM, errno.EAFNOSUPPORT, errno.ESOCKTNOSUPPORT) and "refused"
    return "opened"
print(*[opens(family) for family in (1, 2, 10, 40, 38, 17)])
if x64:
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    low = libc.mmap(None, 8192, 7, 0x22 | 0x40, -1, 0)
    # push rbx; mov eax, edi; mov ebx, esi; xchg ecx, edx; int 0x80; pop rbx; cdqe; ret
    code = bytes.fromhex("53 89f8 89f3 87ca cd80 5b 4898 c3")
    ctypes.memmove(low, code, len(code))
    old = ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_long, ctypes.c_long, ctypes.c_long)(low)
    ctypes.memmove(low + 4096, struct.pack("III", 40, 1, 0), 12)
    print(old(20, 0, 0) > 0, old(102, 1, low + 4096) < 0)
else:
    print(True, True)
`;

/** What agents' programs do every day. */
const everyDay = `
def square(number): return number * number
with multiprocessing.get_context("fork").Pool(2) as pool: print(pool.map(square, [2, 3]))
print(subprocess.run("timeout 5 echo out; setsid echo own; git init -q /tmp/r && git -C /tmp/r status --porcelain", shell=True, capture_output=True, text=True).stdout)
print([name for _, name in socket.if_nameindex()][:1], os.memfd_create("m") > 0, libc.ptrace(0, 0, 0, 0))
`;

test("no socket leads to what runs this machine, and what programs do every day works", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "docker"))) return;
  await using sandbox = await sandboxOf();
  assert.equal(await python(sandbox, knock), "opened opened opened refused refused refused\nTrue True\n");
  assert.equal(await python(sandbox, everyDay), "[4, 9]\nout\nown\n\n['lo'] True 0\n");
});

test("root inside sees nothing of how the host was started and writes to no file of its disk", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "docker"))) return;
  await using sandbox = await sandboxOf({ user: "root", writable: "root" });
  const says = async (script: string) => (await sandbox.exec(["sh", "-c", script, "sh", ...maskedPaths])).stdout;
  assert.equal(await says('for p; do [ -d "$p" ] && ls -A "$p"; [ -f "$p" ] && head -c 100 "$p"; done 2>&1; true'), "");
  const commandLine = (await readFile("/proc/cmdline", "utf8")).trim();
  assert.ok(commandLine === "" || !(await says("cat /proc/cmdline /proc/config.gz 2>&1")).includes(commandLine));
  assert.equal(
    await says("for f in hosts hostname resolv.conf passwd group; do echo x >>/etc/$f; done 2>/dev/null; cat /etc/hostname"),
    "sandbox\n",
  );
  // Every file system that it writes to has a size: memory, or its own layer.
  const writable = await says(
    "cut -d' ' -f3,5 /proc/self/mountinfo | while read -r device place; do (: >$place || : >$place/x) 2>/dev/null && echo $device; done",
  );
  const disk = (await says("stat -c %d /etc/passwd")).trim();
  const device = `${Number(disk) >> 8}:${Number(disk) & 255}`;
  assert.ok(!writable.split("\n").includes(device), `the host's disk ${device} is written to`);
});

test("the image's own chown opens no file of the host by its handle", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "docker"))) return;
  const script = `#!/usr/bin/python3
${prelude.trim()}
root = ctypes.create_string_buffer(struct.pack("IiII", 8, 1, 2, 0))  # the first folder of an ext4
opened = call(304 if x64 else 265, os.open("/etc/hostname", os.O_RDONLY), root, os.O_RDONLY)
open("/testbed/outcome", "w").write(f"{opened} {isinstance(opened, int) and os.listdir(opened)}")
`;
  const encoded = Buffer.from(script).toString("base64");
  const image = await testImage("chown", `RUN mkdir /testbed && echo ${encoded} | base64 -d > /usr/bin/chown`);
  await using sandbox = await sandboxOf({ image, workdir: "/testbed" });
  assert.match((await sandbox.exec(["cat", "outcome"])).stdout, /^EPERM False$/);
});
