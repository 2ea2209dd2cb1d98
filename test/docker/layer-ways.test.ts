/** A container's layer is the same by its overlay's own folders and by the engine's word, also where the agent wants to mislead. */
import assert from "node:assert/strict";
import { readdir, readFile, readlink } from "node:fs/promises";
import { type TestContext, test } from "node:test";
import { keepLayer, temporaryLayers } from "../../base/files/layer.ts";
import { currentOwner } from "../../base/host/owner.ts";
import { Task } from "../../base/schema/task.ts";
import { deliveredSandbox } from "../../graders/grade.ts";
import { placeWork, takeWork } from "../../graders/work/work.ts";
import { dockerClient } from "../../sandboxes/docker/client.ts";
import { engineOwn } from "../../sandboxes/docker/container.ts";
import { containerLayer, type LayerQuery } from "../../sandboxes/docker/layer/container-layer.ts";
import { overlayLayer } from "../../sandboxes/docker/layer/overlay-layer.ts";
import { docker } from "../../sandboxes/docker.ts";
import { doorInside } from "../../sandboxes/door/door-kind.ts";
import type { Sandbox } from "../../sandboxes/sandbox.ts";
import { need } from "../needs.ts";
import { testImage } from "./test-image.ts";

const signal = AbortSignal.timeout(900_000);
const limit = { timeout: 200_000 };
const owner = { run_id: "layer-ways", owner: await currentOwner() };
const places = ["/home/agent", "/tmp"];
const mebibyte = 1024 ** 2;

const image = () =>
  testImage(
    "ways",
    [
      "RUN mkdir -p /testbed/deep/er /testbed/full /testbed/asis /testbed/shared /srv/app/in && cd /testbed",
      "for n in $(seq 60); do mkdir -p many/$n; echo $n > many/$n/file; done",
      "echo a > full/a; echo b > full/b; echo c > asis/c; ln asis/c asis/second; echo s > shared/s; chmod 1777 shared; ln -s full link",
      "printf x > plain; echo x > /srv/app/in/x",
    ].join(" && "),
  );

async function taskOf(more: Record<string, unknown> = {}): Promise<Task> {
  return Task.parse({
    task_id: "ways",
    instruction: "i",
    environment: { image: await image(), workdir: "/testbed", user: "root", writable: "root", ...more },
    grader: { kind: "script", command: ["true"] },
    limits: { memory_mb: 256, disk_mb: 64 },
  });
}

async function says(sandbox: Sandbox, script: string): Promise<string> {
  const { stdout, stderr, exit_code } = await sandbox.exec(["/bin/bash", "-c", script], { timeout_ms: 60_000 });
  assert.equal(exit_code, 0, stderr);
  return stdout;
}

async function entries(sandbox: Sandbox, paths: string[], from: LayerQuery["from"], more: AbortSignal = signal) {
  const client = await dockerClient(signal);
  const hidden = [...engineOwn, doorInside];
  const bounds = { mounts: [], disk: 128 * mebibyte, passed: 1024 * mebibyte };
  return containerLayer(client, client.getContainer(sandbox.id), { paths, places, hidden, ...bounds, from, signal: more });
}

/** The tarball, or the code and message of the refusal. */
async function taken(sandbox: Sandbox, paths: string[], from: LayerQuery["from"]): Promise<{ blob: Buffer; sha256: string } | string> {
  await using kept = await temporaryLayers();
  try {
    const { file, sha256 } = await keepLayer(await entries(sandbox, paths, from), kept.folder);
    return { blob: await readFile(file), sha256 };
  } catch (error) {
    const { code, message } = error as { code?: string; message: string };
    return `${code}: ${message}`;
  }
}

/** This process reads the overlay's folders. */
const canBoth = async (t: TestContext) => (await need(t, "docker-itself")) && (await need(t, "engine-here"));

const inside = ["/testbed"];
const everywhere = ["/"];
const listed = ["/opt", "/home/agent", "/srv/app/in", "/testbed/full", "/testbed/none/x"];

/** Works that follow one another in one sandbox: what is done, and which paths are asked for then. */
const works: Record<string, [script: string, ...asked: string[][]][]> = {
  "few changes, copies that changed nothing, and more changes than archives": [
    ["for n in 1 2 3; do echo changed >> many/$n/file; done", inside],
    [
      `chmod 700 asis/c; chmod 644 asis/c; touch -r full/a stamp; echo a > full/a; touch -r stamp full/a; chown 7 full/b 2>/dev/null; chmod 600 full/b; chmod 644 full/b
      for n in a b c; do ln full/b $n; done; ln asis/second zz; ln asis/c 0`,
      inside,
    ],
    [
      "for n in $(seq 40); do echo changed >> many/$n/file; ln many/$n/file many/$n/other; done; ln full/b zzz; touch -h link",
      inside,
      everywhere,
    ],
  ],
  "all kinds of work": [
    [
      `echo n > new; mkdir -p empty/in a/b/c; echo d > a/b/c/d; echo a-b > a-b; echo a.b > a.b; echo ab > ab; chmod 750 empty; chmod 4755 plain
      ln -s /etc/passwd out; ln -s nowhere dangling; rm -r link; mkdir link; echo in > link/in; rm plain; mkdir plain; rm -r deep; echo file > deep
      ln a/b/c/d hard; ln a/b/c/d a/hard; ln out outtoo; : > none; mkdir -m 1777 open; echo o > open/o; chmod 777 shared; echo t > shared/t`,
      inside,
    ],
    ["rm -r full; mkdir full; echo new > full/new; rm -r asis; mkdir -p asis/c; cp -a many moved; rm -r many", inside],
    [
      `mkfifo pipe; ln pipe pipe1; ln pipe pipe2; ln pipe pipe3; python3 -c "import socket; socket.socket(socket.AF_UNIX).bind('socket')"; ln socket socket2
      truncate -s 2M hole; printf end >> hole; touch -d 1960-01-01 old; touch -d 2200-01-01 late; touch .wh.plain .wh..wh..opq; mknod white c 0 0 2>/dev/null || true`,
      inside,
    ],
    [
      `touch -- -rf '*' ' ' $'new\nline' $'tab\t' 'backslash' 'q"uote' 'ünï' $'\x01' a,b a:b "$(printf 'n%.0s' {1..255})"; mkdir $'d\n'; touch $'d\n/x'
      p=$(printf 'deeper/%.0s' {1..40}); mkdir -p "$p"; echo d > "$p/d"`,
      inside,
    ],
    [
      `echo motd > /etc/motd; mkdir -p /opt/tool; echo t > /opt/tool/t; rm -r /usr/share/perl5; echo h > ~/h; echo t > /tmp/t
      rm /srv/app/in/x; echo n > /srv/app/new; ln -s /etc /opt/etc; mkdir -p /home/other`,
      everywhere,
      listed,
    ],
    ["rm -r /srv/app; ln -s /etc /srv/app", everywhere, listed],
    [
      `mkdir bytes; for b in $(seq 1 127); do [ $b = 47 ] || { n=$(printf "\\\\%03o" $b); printf -v n "$n"; echo $b > "bytes/x$n"; mkdir "bytes/$n$n$n"; }; done
      for c in 80 7ff 800 ffff 10ffff; do printf -v n "\\\\U$c"; echo $c > "bytes/u$n"; done; ls bytes | wc -l`,
      inside,
    ],
    [
      `python3 - <<'END'
import os, stat
os.makedirs("attributes/opaque"); open("attributes/file", "w").write("x")
os.setxattr("attributes/file", "user.secret", b"v" * 100)
# Each of these would change what the overlay shows, or what a program may do. None may be set without a capability.
for name in ["trusted.overlay.opaque", "trusted.overlay.redirect", "trusted.overlay.metacopy", "security.capability"]:
    for path in ["attributes/file", "attributes/opaque", "full", "/testbed"]:
        try: os.setxattr(path, name, b"y")
        except OSError: continue
        raise SystemExit(name + " could be set on " + path)
for name in ["user.overlay.opaque", "user.overlay.whiteout"]: os.setxattr("full", name, b"y")
for kind in [stat.S_IFCHR, stat.S_IFBLK]:
    try: os.mknod("attributes/node", 0o666 | kind, os.makedev(0, 0))
    except OSError: continue
    raise SystemExit("a device node could be made")
os.mknod("attributes/.wh.full", 0o666); os.mknod("attributes/.wh..wh..plnk", 0o666)
END`,
      inside,
    ],
  ],
  "what is refused": [
    ["printf x > $'\\xff\\xfe'", inside],
    ["rm *; ln -s $'\\xff' bad", inside],
    ["rm bad; truncate -s 3G hole", inside],
    ["rm hole; p=$(printf 'd/%.0s' {1..100}); mkdir -p $p; echo > $p/file", inside],
    ["rm -r d; n=$(printf 'n%.0s' {1..250}); for i in {1..20}; do mkdir $n && cd -P $n; done; echo > file", inside],
  ],
};

for (const [what, steps] of Object.entries(works))
  test(`docker: both ways take the same bytes: ${what}`, limit, async (t) => {
    if (!(await canBoth(t))) return;
    await using sandbox = await deliveredSandbox(await taskOf(), docker, owner, signal);
    for (const [script, ...asked] of steps) {
      await says(sandbox, script);
      for (const paths of asked) {
        const [engine, overlay] = [await taken(sandbox, paths, "engine"), await taken(sandbox, paths, "overlay")];
        const where = `${paths.join()} after ${script}`;
        if (typeof engine === "string" || typeof overlay === "string") assert.deepEqual(codeOf(overlay), codeOf(engine), where);
        else assert.ok(overlay.sha256 === engine.sha256 && overlay.blob.equals(engine.blob), where);
        assert.equal(typeof overlay === "string", what === "what is refused", where);
      }
    }
  });

/** Each way meets what is too large at another place. */
function codeOf(result: Awaited<ReturnType<typeof taken>>): string | undefined {
  return typeof result === "string" ? result.split(":")[0] : "a work";
}

test("docker: a pipe with many names is no part of a work, and the work can be placed", limit, async (t) => {
  if (!(await need(t, "docker"))) return;
  const task = await taskOf();
  await using kept = await temporaryLayers();
  await using sandbox = await deliveredSandbox(task, docker, owner, signal);
  await says(sandbox, "mkdir p; cd p; mkfifo pipe; ln pipe pipe1; ln pipe pipe2; ln pipe pipe3; echo x > x");
  await sandbox.freeze();
  const work = await takeWork(sandbox, task, [], kept.folder, signal);
  await using fresh = await deliveredSandbox(task, docker, owner, signal);
  await placeWork(fresh, task, work, {}, signal);
  assert.equal(await says(fresh, "ls p"), "x\n");
});

test("docker: a workdir whose parent is gone is no empty work", limit, async (t) => {
  if (!(await need(t, "docker"))) return;
  const task = await taskOf({ workdir: "/srv/app/in" });
  await using kept = await temporaryLayers();
  await using sandbox = await deliveredSandbox(task, docker, owner, signal);
  await says(sandbox, "rm -r /srv/app; ln -s /etc /srv/app");
  await sandbox.freeze();
  await assert.rejects(takeWork(sandbox, task, [], kept.folder, signal), { code: "output_unreadable", message: /is gone/ });
});

test("docker: an agent that still runs and swaps folders for links has nothing of this machine read", limit, async (t) => {
  if (!(await canBoth(t))) return;
  const client = await dockerClient(signal);
  await using sandbox = await deliveredSandbox(await taskOf(), docker, owner, signal);
  const swap = `import os
os.makedirs("d/proc/sys/kernel"); open("d/proc/sys/kernel/hostname", "w").write("mine"); os.symlink("/", "l")
os.makedirs("e"); open("e/f", "w").write("f"); os.mkfifo("e/p")
print("ready", flush=True)
while True:
  os.rename("d", "x"); os.rename("l", "d"); os.rename("d", "l"); os.rename("x", "d")
  os.rename("e/f", "e/g"); os.rename("e/p", "e/f"); os.rename("e/f", "e/p"); os.rename("e/g", "e/f")`;
  const stop = new AbortController();
  const running = sandbox.exec(["python3", "-c", swap], { signal: stop.signal }).catch(() => null);
  for (let looks = 0; !/e\/p/.test((await sandbox.exec(["sh", "-c", "ls e/p 2>&1"])).stdout) && looks < 100; looks++);
  await using source = await overlayLayer(client, client.getContainer(sandbox.id), signal);
  assert.ok(source, "this engine's overlay can be read here");
  for (let round = 0; round < 40; round++) {
    const text: string[] = [];
    try {
      for await (const { content } of await entries(sandbox, ["/testbed"], "overlay"))
        for await (const chunk of content ?? []) text.push(chunk.toString("utf8"));
    } catch (error) {
      assert.match(String((error as { code?: string }).code), /^(sandbox_error|E[A-Z]+)$/);
    }
    assert.deepEqual(
      [...new Set(text)].filter((one) => !["mine", "f"].includes(one)),
      [],
    );
  }
  stop.abort();
  await running;
});

test("docker: a take-out that is cancelled ends at once and holds no descriptor", limit, async (t) => {
  if (!(await canBoth(t))) return;
  await using sandbox = await deliveredSandbox(await taskOf(), docker, owner, signal);
  await says(sandbox, "mkdir many2; cd many2; seq 5000 | xargs touch");
  const stop = new AbortController();
  const seen: string[] = [];
  await assert.rejects(async () => {
    for await (const { path } of await entries(sandbox, ["/testbed"], "overlay", stop.signal)) {
      seen.push(path);
      if (seen.length === 10) stop.abort();
    }
  });
  assert.ok(seen.length < 100);
  const held = await Promise.all((await readdir("/proc/self/fd")).map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => "")));
  assert.deepEqual(
    held.filter((path) => path.includes("overlay2") || path.includes("/testbed")),
    [],
  );
});
