/** What every sandbox backend must do, over the registry; Docker once for each of its two doors. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { createServer, type IncomingMessage, type RequestListener, type Server } from "node:http";
import type { Duplex } from "node:stream";
import { buffer } from "node:stream/consumers";
import { type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { AlidadeError } from "../../base/errors.ts";
import type { TreeFile } from "../../base/files/file-tree.ts";
import { currentOwner } from "../../base/host/owner.ts";
import { Limits } from "../../base/schema/task.ts";
import { dockerBackend } from "../../sandboxes/docker.ts";
import { nodeInside, nodeMount } from "../../sandboxes/node-mount.ts";
import { backends } from "../../sandboxes/registry.ts";
import type { Door, Sandbox, SandboxBackend, SandboxSpec } from "../../sandboxes/sandbox.ts";
import { missing, need } from "../needs.ts";

const signal = AbortSignal.timeout(900_000);

async function spec(more: Partial<SandboxSpec> = {}): Promise<SandboxSpec> {
  return {
    run_id: "contract",
    owner: await currentOwner(),
    image: null,
    workdir: "/work",
    mounts: { [nodeInside]: await nodeMount() },
    env: {},
    limits: Limits.parse({ memory_mb: 512, disk_mb: 256, pids: 256 }),
    ...more,
  };
}

function file(path: string, content: string | Buffer, mode = 0o644): TreeFile {
  return { path, content: Buffer.from(content), mode };
}

async function ready(t: TestContext, backend: SandboxBackend): Promise<boolean> {
  if (backend.name === "docker") return need(t, "docker");
  const reason = await backend.unavailable(signal);
  if (reason !== null) t.skip(reason);
  return reason === null;
}

/** The arguments of every process in reach that mention `word`. */
async function processesNaming(sandbox: Sandbox, word: string): Promise<string[]> {
  const { stdout, stderr, exit_code } = await sandbox.exec(["ps", "-A", "-o", "stat=,args="]);
  assert.deepEqual([exit_code, stderr, stdout.includes("ps -A")], [0, "", true], stdout);
  return stdout.split("\n").filter((line) => line.includes(word) && !line.startsWith("Z"));
}

/** A number of seconds that no other sleep on the machine has. */
let seconds = 40_000_000 + (process.pid % 1_000_000) * 10;
function uniqueSeconds(): string {
  seconds += 1;
  return String(seconds);
}

async function untilNone(sandbox: Sandbox, word: string): Promise<void> {
  for (let look = 0; look < 100 && (await processesNaming(sandbox, word)).length > 0; look += 1) await sleep(20);
  assert.deepEqual(await processesNaming(sandbox, word), []);
}

for (const backend of backends) {
  const of = (title: string, body: (sandbox: Sandbox, t: TestContext) => Promise<void>) =>
    test(`${backend.name}: ${title}`, { timeout: 300_000 }, async (t) => {
      if (!(await ready(t, backend))) return;
      await using sandbox = await backend.create(await spec(), signal);
      await body(sandbox, t);
    });

  of("a command gets its folder, variables, input and user, and nothing of the host's environment", async (sandbox) => {
    process.env.ALIDADE_TEST_LEAK = "leaked";
    const { exit_code, stdout, stderr, timed_out, out_of_memory, dropped_bytes } = await sandbox.exec(
      ["sh", "-c", 'cat; pwd; echo "$GREETING"; echo "$HOME"; env; id -u; echo oops >&2; exit 3'],
      { env: { GREETING: "grüß dich" }, stdin: "input\n", cwd: "/tmp" },
    );
    delete process.env.ALIDADE_TEST_LEAK;
    const lines = stdout.split("\n");
    assert.deepEqual(lines.slice(0, 4), ["input", sandbox.path("/tmp"), "grüß dich", sandbox.path("/home/agent")]);
    assert.equal(stderr, "oops\n");
    assert.deepEqual(
      { exit_code, timed_out, out_of_memory, dropped_bytes },
      { exit_code: 3, timed_out: false, out_of_memory: false, dropped_bytes: 0 },
    );
    assert.doesNotMatch(stdout, /leaked/);
    if (backend.capabilities.isolation === "container") {
      assert.equal(lines.at(-2), "1000");
      assert.equal((await sandbox.exec(["id", "-u"], { user: "root" })).stdout, "0\n");
    }
    assert.equal((await sandbox.exec(["pwd"])).stdout, `${sandbox.path("/work")}\n`);
  });

  of("a command that is not there is exit code 127 with the reason on stderr", async (sandbox) => {
    const result = await sandbox.exec(["no-such-command-here"]);
    assert.equal(result.exit_code, 127);
    assert.match(result.stderr, /no-such-command-here/);
    assert.equal(result.stdout, "");
  });

  of("a command that gives up its output and goes on is waited for", async (sandbox) => {
    const { exit_code, stdout } = await sandbox.exec(["sh", "-c", "echo here; exec >said 2>&1; sleep 1; echo there; exit 3"]);
    assert.deepEqual([exit_code, stdout], [3, "here\n"]);
    assert.deepEqual(await sandbox.readFiles("/work"), [file("said", "there\n")]);
    const late = await sandbox.exec(["sh", "-c", `exec >said 2>&1; sleep ${uniqueSeconds()}`], { timeout_ms: 1_000 });
    assert.deepEqual([late.timed_out, late.exit_code], [true, null]);
  });

  of("what a command leaves in the background does not hold it up", async (sandbox) => {
    const word = uniqueSeconds();
    const { exit_code, stdout, duration_ms } = await sandbox.exec(["sh", "-c", `sleep ${word} & echo started`], { timeout_ms: 20_000 });
    assert.equal(exit_code, 0);
    assert.equal(stdout, "started\n");
    assert.ok(duration_ms < 15_000, `${duration_ms} ms`);
    assert.equal((await processesNaming(sandbox, word)).length, 1);
  });

  of("a command that takes too long ends with its whole process tree and no other command", async (sandbox) => {
    const doomed = uniqueSeconds();
    const spared = uniqueSeconds();
    const tree = `sh -c "sleep ${doomed} & setsid sleep ${doomed} & (setsid sh -c 'sleep ${doomed}; true' &) ; wait" & sleep ${doomed}; true`;
    const treeSize = 7; // three shells and four sleeps
    const other = new AbortController();
    const otherCommand = sandbox.exec(["sleep", spared], { signal: other.signal });
    otherCommand.catch(() => {});
    const deadline = new AbortController();
    const ended = sandbox.exec(["sh", "-c", `echo begun; ${tree}`], { deadline: deadline.signal });
    while ((await processesNaming(sandbox, doomed)).length < treeSize) await sleep(20);
    while ((await processesNaming(sandbox, spared)).length < 1) await sleep(20);
    deadline.abort();
    const result = await ended;
    assert.equal(result.timed_out, true);
    assert.equal(result.exit_code, null);
    assert.equal(result.stdout, "begun\n");
    await untilNone(sandbox, doomed);
    assert.equal((await processesNaming(sandbox, spared)).length, 1);
    other.abort();
    await assert.rejects(otherCommand, (error: AlidadeError) => error.code === "cancelled");
    await untilNone(sandbox, spared);
  });

  of("a command is over after its time-out, at a deadline that fires, and at one that has fired", async (sandbox) => {
    const limits = [() => ({ timeout_ms: 300 }), () => ({ deadline: AbortSignal.timeout(300) }), () => ({ deadline: AbortSignal.abort() })];
    for (const limit of limits) {
      const result = await sandbox.exec(["sleep", uniqueSeconds()], limit());
      assert.deepEqual([result.timed_out, result.exit_code], [true, null]);
    }
  });

  of("output over the bound is dropped and counted", async (sandbox) => {
    const script = "head -c 3000000 /dev/zero | tr '\\0' x; head -c 2000 /dev/zero | tr '\\0' y >&2";
    const result = await sandbox.exec(["sh", "-c", script], { max_output_bytes: 1_000 });
    assert.equal(result.stdout, "x".repeat(1_000));
    assert.equal(result.stderr, "y".repeat(1_000));
    assert.equal(result.dropped_bytes, 2_999_000 + 1_000);
  });

  of("of output over the bound the end is kept where it is asked for", async (sandbox) => {
    const script = "head -c 3000000 /dev/zero | tr '\\0' x; echo last; head -c 2000 /dev/zero | tr '\\0' y >&2";
    const result = await sandbox.exec(["sh", "-c", script], { max_output_bytes: 1_000, keep_output: "end" });
    assert.equal(result.stdout, `${"x".repeat(995)}last\n`);
    assert.equal(result.stderr, "y".repeat(1_000));
    assert.equal(result.dropped_bytes, 2_999_005 + 1_000);
  });

  of("files go in and come out as they are", async (sandbox) => {
    const large = randomBytes(3_000_000);
    const files = [
      file("a/b/deep.txt", "deep\r\n"),
      file("empty", ""),
      file("large.bin", large),
      file("run.sh", "#!/bin/sh\necho ran\n", 0o755),
      file("ünï cödé", "x"),
    ];
    await sandbox.writeFiles(files);
    assert.equal((await sandbox.exec(["./run.sh"])).stdout, "ran\n");
    assert.deepEqual(await sandbox.readFiles("/work"), files);
    await sandbox.writeFiles([file("a/b/deep.txt", "replaced")]);
    assert.deepEqual(await sandbox.readFiles("/work/a"), [file("b/deep.txt", "replaced")]);
    // The sandbox's own user can change what was written for it.
    assert.equal((await sandbox.exec(["sh", "-c", "echo more >> a/b/deep.txt && rm empty && mkdir a/new"])).exit_code, 0);
  });

  of("only regular files come out: links are left out, a second name of a file is a file", async (sandbox) => {
    await sandbox.exec(["sh", "-c", "echo one > one; ln one two; ln -s /etc/passwd link; ln -s /etc folder; mkfifo pipe"]);
    const files = await sandbox.readFiles("/work");
    assert.deepEqual(
      files.map(({ path, content }) => [path, content.toString()]),
      [
        ["one", "one\n"],
        ["two", "one\n"],
      ],
    );
  });

  of("paths that leave their folder are refused", async (sandbox) => {
    for (const path of ["../escape", "/tmp/escape", "a/../../escape", "", "a//b", "nul\0l"]) {
      await assert.rejects(sandbox.writeFiles([file(path, "x")]), (error: AlidadeError) => error.code === "request_invalid", path);
    }
    await assert.rejects(sandbox.readFiles("/nowhere"), (error: AlidadeError) => error.code === "not_found");
    assert.deepEqual(await sandbox.readFiles("/work"), []);
  });

  of("reading is bounded, and leaves out what it is told to", async (sandbox, t) => {
    if (sandbox.facts.disk_limit === "watchdog") return t.skip("its watchdog ends what makes the hole before it is read");
    await sandbox.writeFiles([
      file("keep.js", "1"),
      file("node_modules/x/index.js", "2"),
      file("src/__pycache__/x.pyc", "3"),
      file("src/x.py", "4"),
    ]);
    const kept = await sandbox.readFiles("/work", { exclude: ["node_modules", "**/__pycache__"], max_files: 2 });
    assert.deepEqual(
      kept.map(({ path }) => path),
      ["keep.js", "src/x.py"],
    );
    await assert.rejects(sandbox.readFiles("/work", { max_files: 3 }), (error: AlidadeError) => error.code === "output_too_large");
    await sandbox.exec(["sh", "-c", "truncate -s 100G sparse 2>/dev/null || truncate -s 200M sparse"]);
    await assert.rejects(sandbox.readFiles("/work", { max_bytes: 1_000_000 }), (error: AlidadeError) => error.code === "output_too_large");
    assert.equal((await sandbox.exec(["true"])).exit_code, 0);
  });

  of("work in folders that are too deep to read whole is too large, and never read in part", async (sandbox) => {
    for (const [at, attack] of [
      "p=$(printf 'd/%.0s' {1..1000}); for i in 1 2 3; do mkdir -p $p && cd -P $p; done; echo > file",
      "n=$(printf 'n%.0s' {1..250}); for i in {1..20}; do mkdir $n && cd -P $n; done; echo > file",
    ].entries()) {
      const made = await sandbox.exec(["bash", "-c", `mkdir ${at} && cd ${at} && ${attack}`]);
      assert.equal(made.exit_code, 0, made.stderr);
      await assert.rejects(sandbox.readFiles("/work", { exclude: [String(1 - at), "**/*.pyc"] }), { code: "output_too_large" });
    }
    const others = () => sandbox.readFiles("/work", { exclude: ["0", "1"] });
    const isPodman = backend.name === "docker" && (await missing("docker-itself")) !== null;
    if (!isPodman) assert.deepEqual(await others(), [], "what is left out may be as deep as it likes");
    // Its archives end there.
    else await assert.rejects(others, { code: "output_too_large" });
  });

  of("freezing ends every process and keeps the files", async (sandbox) => {
    const word = uniqueSeconds();
    await sandbox.exec(["sh", "-c", `echo kept > kept; setsid sleep ${word} >/dev/null 2>&1 &`]);
    const running = sandbox.exec(["sleep", word]);
    await sandbox.freeze();
    assert.notEqual((await running).exit_code, 0);
    await untilNone(sandbox, word);
    assert.deepEqual(await sandbox.readFiles("/work"), [file("kept", "kept\n")]);
  });

  test(`${backend.name}: a body that throws still releases the sandbox, and nothing is left of it`, { timeout: 300_000 }, async (t) => {
    if (!(await ready(t, backend))) return;
    const run_id = `thrown${randomBytes(6).toString("hex")}`;
    let sandbox: Sandbox | null = null;
    await assert.rejects(async () => {
      await using leased = await backend.create(await spec({ run_id }), signal);
      sandbox = leased;
      await leased.exec(["sh", "-c", "sleep 5000 &"]);
      await leased.openDoor(() => {});
      throw new Error("the body failed");
    }, /the body failed/);
    await assert.rejects((sandbox as unknown as Sandbox).exec(["true"]), (error: AlidadeError) => error.code === "sandbox_died");
    // With all, reap would name it if it were still there.
    await (sandbox as unknown as Sandbox)[Symbol.asyncDispose]();
    assert.doesNotMatch((await backend.reap({}, signal)).removed.join("\n"), new RegExp(run_id));
  });

  test(`${backend.name}: making one that was cancelled leaves nothing`, { timeout: 300_000 }, async (t) => {
    if (!(await ready(t, backend))) return;
    const controller = new AbortController();
    const making = backend.create(await spec(), controller.signal);
    controller.abort();
    await assert.rejects(making);
    await assert.rejects(backend.create(await spec(), controller.signal));
  });

  test(`${backend.name}: a workdir that no sandbox can have is refused by name`, async (t) => {
    if (!(await ready(t, backend))) return;
    for (const workdir of ["/", "relative", "/a/../b"]) {
      await assert.rejects(
        backend.create(await spec({ workdir }), signal),
        (error: AlidadeError) => error.code === "config_invalid" && error.param === "workdir",
      );
    }
  });
}

/** Played by Node inside: `node client.mjs URL SCENE`; prints one JSON line. */
const client = `
import http from "node:http"; import net from "node:net"; import { createHash, randomBytes } from "node:crypto";
const [url, scene] = process.argv.slice(2);
const agent = new http.Agent({ keepAlive: true, maxSockets: scene === "keep-alive" ? 1 : 200 });
const call = (path, { body, method = body ? "POST" : "GET", read = true } = {}) => new Promise((resolve, reject) => {
  const request = http.request(url + path, { method, agent, headers: body ? { "content-length": body.length } : {} }, (response) => {
    if (!read) return resolve(response);
    const chunks = []; response.on("data", (c) => chunks.push(c)); response.on("error", reject);
    response.on("end", () => resolve({ status: response.statusCode, body: Buffer.concat(chunks) }));
  });
  request.on("error", reject); request.end(body);
});
const sha = (b) => createHash("sha256").update(b).digest("hex");
const rest = (r) => new Promise((resolve, reject) => { let n = 0; r.on("data", (c) => { n += c.length; }); r.on("end", () => resolve(n)); r.on("error", reject); });
const scenes = {
  async "keep-alive"() { const bodies = []; for (let i = 0; i < 20; i++) bodies.push(String((await call("/" + i)).body)); return bodies; },
  async many() { return (await Promise.all(Array.from({ length: 100 }, (_, i) => call("/" + i)))).map((r) => String(r.body)); },
  async large() { const body = randomBytes(5_000_000); const r = await call("/echo", { body }); return { sent: sha(body), got: sha(r.body), length: r.body.length }; },
  async slow() {
    const stuck = await call("/large", { read: false });
    const started = performance.now();
    const others = await Promise.all(Array.from({ length: 50 }, (_, i) => call("/" + i)));
    return { others: others.length, ms: performance.now() - started, bytes: await rest(stuck) };
  },
  async upload() {
    const stuck = call("/held", { body: Buffer.alloc(5_000_000) });
    const others = await Promise.all(Array.from({ length: 50 }, (_, i) => call("/" + i)));
    await call("/let-go");
    return { others: others.length, stuck: String((await stuck).body) };
  },
  async abort() { const r = await call("/endless", { read: false }); await new Promise((f) => r.once("data", f)); r.destroy(); await new Promise((f) => setTimeout(f, 300)); return String((await call("/after")).body); },
  async idle() { await call("/"); return await new Promise((f) => { const s = net.connect(new URL(url).port, "127.0.0.1", () => s.write("GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")); s.resume(); s.on("end", () => { s.end(); f("closed by the server"); }); }); },
  async echo() {
    const sent = randomBytes(1_000_000);
    return await new Promise((resolve, reject) => {
      const s = net.connect({ port: new URL(url).port, host: "127.0.0.1", allowHalfOpen: true }, () => s.end(sent));
      const chunks = []; s.on("data", (c) => chunks.push(c)); s.on("error", reject); s.on("end", () => resolve(sha(Buffer.concat(chunks)) === sha(sent)));
    });
  },
  async crowd() {
    const refused = await new Promise((resolve) => {
      const gone = new Set();
      const all = Array.from({ length: 700 }, () => net.connect(new URL(url).port, "127.0.0.1"));
      for (const s of all) s.on("error", () => {}).resume().once("close", () => { gone.add(s); if (gone.size === 700 - 512) { for (const other of all) other.destroy(); resolve(gone.size); } });
    });
    for (;;) try { return { refused, after: String((await call("/after")).body) }; } catch {}
  },
  async reset() { return await new Promise((resolve) => { const s = net.connect(new URL(url).port, "127.0.0.1"); s.on("error", (e) => resolve(e.code)); s.on("end", () => resolve("end")); s.write("x"); }); },
};
console.log(JSON.stringify(await scenes[scene]()));
agent.destroy();
`;

async function play(sandbox: Sandbox, door: Door, scene: string): Promise<unknown> {
  await sandbox.writeFiles([file("client.mjs", client)]);
  const node = sandbox.path(`${nodeInside}/bin/node`);
  const result = await sandbox.exec([node, sandbox.path("/work/client.mjs"), door.url, scene], { timeout_ms: 60_000 });
  assert.equal(result.exit_code, 0, JSON.stringify(result));
  return JSON.parse(result.stdout);
}

function serve(handler: RequestListener): { server: Server; onConnection: (socket: Duplex) => void; connections: Set<Duplex> } {
  const server = createServer(handler);
  const connections = new Set<Duplex>();
  return {
    server,
    connections,
    onConnection: (socket) => {
      connections.add(socket);
      server.emit("connection", socket);
    },
  };
}

const echoPath: RequestListener = (request, response) => {
  request.resume();
  request.on("end", () => response.end(`answer to ${request.url}`));
};

const doors: { name: string; backend: SandboxBackend }[] = backends.flatMap((backend): { name: string; backend: SandboxBackend }[] =>
  backend.name === "docker"
    ? (["forwarder", "namespace"] as const).map((door) => ({ name: `docker, ${door} door`, backend: dockerBackend({ door }) }))
    : [{ name: `${backend.name}, door`, backend }],
);

for (const { name, backend } of doors) {
  const through = (title: string, body: (sandbox: Sandbox, t: TestContext) => Promise<void>) =>
    test(`${name}: ${title}`, { timeout: 300_000 }, async (t) => {
      if (!(await ready(t, backend))) return;
      if (name.includes("namespace") && !(await need(t, "engine-here"))) return;
      await using sandbox = await backend.create(await spec(), signal);
      await body(sandbox, t);
    });

  through("requests share a kept-alive connection", async (sandbox) => {
    const { onConnection, connections } = serve(echoPath);
    await using door = await sandbox.openDoor(onConnection);
    const bodies = await play(sandbox, door, "keep-alive");
    assert.deepEqual(
      bodies,
      Array.from({ length: 20 }, (_, index) => `answer to /${index}`),
    );
    assert.equal(connections.size, 1);
  });

  through("a hundred requests at once are all answered", async (sandbox) => {
    const { onConnection, connections } = serve((request, response) => void setTimeout(() => echoPath(request, response), 50));
    await using door = await sandbox.openDoor(onConnection);
    assert.deepEqual(
      await play(sandbox, door, "many"),
      Array.from({ length: 100 }, (_, index) => `answer to /${index}`),
    );
    assert.ok(connections.size > 50, `${connections.size} connections`);
  });

  through("more connections than a door has are refused, and there is room again when they are gone", async (sandbox) => {
    const { onConnection } = serve(echoPath);
    let [open, most] = [0, 0];
    await using door = await sandbox.openDoor((socket) => {
      most = Math.max(most, ++open);
      socket.on("close", () => open--);
      onConnection(socket);
    });
    assert.deepEqual(await play(sandbox, door, "crowd"), { refused: 188, after: "answer to /after" });
    assert.equal(most, 512);
  });

  through("five megabytes go up and come back unchanged", async (sandbox) => {
    const { onConnection } = serve(async (request, response) => response.end(await buffer(request)));
    await using door = await sandbox.openDoor(onConnection);
    const { sent, got, length } = (await play(sandbox, door, "large")) as { sent: string; got: string; length: number };
    assert.equal(length, 5_000_000);
    assert.equal(got, sent);
  });

  through("a client that reads nothing holds no other client up, and still gets all of it", async (sandbox) => {
    const { onConnection } = serve((request, response) =>
      request.url === "/large" ? response.end(Buffer.alloc(8_000_000)) : echoPath(request, response),
    );
    await using door = await sandbox.openDoor(onConnection);
    const { others, bytes } = (await play(sandbox, door, "slow")) as { others: number; bytes: number };
    assert.deepEqual({ others, bytes }, { others: 50, bytes: 8_000_000 });
  });

  through("a server that reads nothing of one upload answers the others meanwhile", async (sandbox) => {
    let letGo = () => {};
    const { onConnection } = serve(async (request, response) => {
      if (request.url === "/held") {
        await new Promise<void>((resolve) => {
          letGo = resolve;
        });
        response.end(String((await buffer(request)).length));
      } else {
        if (request.url === "/let-go") letGo();
        echoPath(request, response);
      }
    });
    await using door = await sandbox.openDoor(onConnection);
    assert.deepEqual(await play(sandbox, door, "upload"), { others: 50, stuck: "5000000" });
  });

  through("the server sees a client that leaves in the middle of an answer", async (sandbox) => {
    const left = Promise.withResolvers<boolean>();
    const { onConnection } = serve((request: IncomingMessage, response) => {
      if (request.url !== "/endless") return echoPath(request, response);
      const timer = setInterval(() => response.write("data: more\n\n"), 20);
      response.on("close", () => {
        clearInterval(timer);
        left.resolve(response.writableFinished);
      });
    });
    await using door = await sandbox.openDoor(onConnection);
    assert.equal(await play(sandbox, door, "abort"), "answer to /after");
    assert.equal(await left.promise, false);
  });

  through("an idle connection is closed by the server's own time-out", async (sandbox) => {
    const { server, onConnection } = serve(echoPath);
    server.keepAliveTimeout = 100;
    await using door = await sandbox.openDoor(onConnection);
    assert.equal(await play(sandbox, door, "idle"), "closed by the server");
  });

  through("half-closing ends one direction only", async (sandbox) => {
    await using door = await sandbox.openDoor((socket) => void socket.pipe(socket));
    assert.equal(await play(sandbox, door, "echo"), true);
  });

  through("a connection that the host destroys ends inside", async (sandbox) => {
    const gone = Promise.withResolvers<void>();
    await using door = await sandbox.openDoor((socket) => {
      socket.once("data", () => socket.destroy());
      socket.once("close", () => gone.resolve());
    });
    assert.match(String(await play(sandbox, door, "reset")), /^(ECONNRESET|end)$/);
    await gone.promise;
  });

  through("closing the door ends its connections, and it can be opened again", async (sandbox) => {
    const arrived = Promise.withResolvers<Duplex>();
    const first = await sandbox.openDoor(arrived.resolve);
    const script = `const s = require("net").connect(${new URL(first.url).port}, "127.0.0.1"); s.on("error", () => {}); s.on("close", () => console.log("closed"));`;
    const waiting = sandbox.exec([sandbox.path(`${nodeInside}/bin/node`), "-e", script], { timeout_ms: 30_000 });
    const socket = await arrived.promise;
    const closed = new Promise((resolve) => socket.once("close", resolve));
    await first[Symbol.asyncDispose]();
    await closed;
    assert.equal((await waiting).stdout, "closed\n");
    const { onConnection } = serve(echoPath);
    await using second = await sandbox.openDoor(onConnection);
    assert.ok(Array.isArray(await play(sandbox, second, "many")));
  });
}
