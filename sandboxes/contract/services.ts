/** Services beside a sandbox, on a backend that has them. They and the commands use python3 and bash of the base image. */
import assert from "node:assert/strict";
import type { Duplex } from "node:stream";
import { text } from "node:stream/consumers";
import { readJson } from "../../base/schema/read-json.ts";
import { Environment } from "../../base/schema/task.ts";
import type { Sandbox, SandboxSpec } from "../sandbox.ts";
import { inSandbox, type SandboxCheck, type SandboxContext } from "./in-sandbox.ts";

/** Listens at each port and at one abstract socket, says its name, and counts its connections in its state. */
const server = `
import os, socket, sys, threading
os.makedirs("/srv/state", exist_ok=True)
lock = threading.Lock()
def serve(listener):
    while True:
        client, _ = listener.accept()
        with lock: open("/srv/state/count", "a").write("x")
        client.sendall((sys.argv[1] + " " + str(len(open("/srv/state/count").read()))).encode()); client.close()
listeners = [socket.create_server(("127.0.0.1", int(port))) for port in sys.argv[2:]]
hidden = socket.socket(socket.AF_UNIX); hidden.bind("\\0" + sys.argv[1]); hidden.listen()
for one in listeners + [hidden]: threading.Thread(target=serve, args=(one,)).start()
open("/tmp/up", "w")`;

function serving(name: string, ports: number[], more: object = {}) {
  const healthcheck = { command: ["test", "-e", "/tmp/up"], interval_seconds: 0.2, retries: 900 };
  const limits = { memory_mb: 64, disk_mb: 16, pids: 64 };
  return { build: null, command: ["python3", "-c", server, name, ...ports.map(String)], healthcheck, ...limits, ...more };
}

/** All TCP ports that answer, all abstract sockets, and the names that are known. */
const scan = `
import json, socket
def open_at(port):
    one = socket.socket(); one.settimeout(5)
    # A socket whose own port is the wanted one connects to itself.
    try: return one.connect_ex(("127.0.0.1", port)) == 0 and one.getsockname() != one.getpeername()
    finally: one.close()
def known(name):
    try: return bool(socket.gethostbyname(name))
    except OSError: return False
sockets = [line.split()[-1] for line in open("/proc/net/unix") if "@" in line]
print(json.dumps([[port for port in range(1, 65536) if open_at(port)], sockets, [name for name in ("desk", "web", "store") if known(name)]]))`;

type Seen = [ports: number[], sockets: string[], names: string[]];

async function scanned(sandbox: Sandbox): Promise<Seen> {
  const { stdout, stderr } = await sandbox.exec(["python3", "-c", scan], { timeout_ms: 120_000 });
  assert.notEqual(stdout, "", stderr);
  return readJson(stdout) as Seen;
}

const closed = (socket: Duplex) => void socket.destroy();

/** A statement about one sandbox with these services. */
function withServices(
  says: string,
  services: Record<string, object>,
  body: (sandbox: Sandbox, context: SandboxContext, spec: SandboxSpec) => Promise<void>,
): SandboxCheck {
  return {
    says,
    check: async (backend, context) => {
      if (!backend.capabilities.services) return;
      const image = await baseImageOf(context, backend);
      const named = Object.fromEntries(Object.entries(services).map(([name, one]) => [name, { image, ...one }]));
      const environment = Environment.parse({ services: named });
      await inSandbox(backend, context, (sandbox, spec) => body(sandbox, context, spec), { services: environment.services });
    },
  };
}

/** As the sandbox's facts name it. */
async function baseImageOf(context: SandboxContext, backend: Parameters<SandboxCheck["check"]>[0]): Promise<string> {
  let image: string | null = null;
  await inSandbox(backend, context, async ({ facts }) => {
    image = facts.image;
  });
  assert.ok(image, "its sandboxes have an image");
  return image;
}

const said = async (sandbox: Sandbox, service: string, port: number, signal: AbortSignal) =>
  text(await sandbox.connect(service, port, signal));

/** Keeps a word in its state until it is asked to end, and then writes that. */
const writing = `
import os, signal, sys, time
os.makedirs("/srv/state", exist_ok=True)
def end(*_): open("/srv/state/word", "w").write("ended"); sys.exit(0)
signal.signal(signal.SIGTERM, end)
open("/srv/state/word", "w").write("working")
open("/tmp/up", "w")
while True: time.sleep(1)`;

const upper = "import sys; print(sys.stdin.readline().upper(), end='', flush=True)";

export const serviceChecks: readonly SandboxCheck[] = [
  withServices(
    "of services apart a sandbox finds the exposed ports alone: no other port, no abstract socket and no name",
    {
      desk: serving("desk", [8080, 8081], { network: "apart", expose: [8081], aliases: ["web"] }),
      store: serving("store", [8082], { network: "apart" }),
    },
    async (sandbox, { signal }) => {
      await using _door = await sandbox.openDoor(closed);
      assert.deepEqual(await scanned(sandbox), [[4000, 8081], [], ["desk", "web"]]);
      const { stdout } = await sandbox.exec(["bash", "-c", "exec 3<>/dev/tcp/desk/8081; cat <&3"], { timeout_ms: 60_000 });
      assert.match(stdout, /^desk \d+$/);
      assert.match(await said(sandbox, "store", 8082, signal), /^store \d+$/);
    },
  ),
  withServices(
    "the host connects to each service by its name and port, and where nothing listens it is told so",
    { desk: serving("desk", [8080], { network: "apart" }), near: serving("near", [8083]) },
    async (sandbox, { signal }) => {
      assert.deepEqual([await said(sandbox, "desk", 8080, signal), await said(sandbox, "near", 8083, signal)], ["desk 1", "near 1"]);
      await assert.rejects(said(sandbox, "desk", 8083, signal), { code: "sandbox_error", message: /The service desk took no connection/ });
      await assert.rejects(said(sandbox, "other", 8080, signal), { code: "not_found" });
    },
  ),
  withServices(
    "the host speaks with a command in a service apart or in the sandbox, and its stream ends with the command",
    { desk: serving("desk", [8080], { network: "apart" }) },
    async (sandbox, { signal }) => {
      for (const service of ["desk", "main"]) {
        const stream = await sandbox.start(service, ["python3", "-c", upper], signal);
        stream.write("hello\n");
        assert.equal(await text(stream), "HELLO\n");
      }
      await assert.rejects(sandbox.start("other", ["true"], signal), { code: "not_found" });
    },
  ),
  withServices(
    "the state of a service is read while it works, and once more after it was asked to end",
    { desk: { ...serving("desk", [8080], { network: "apart", state: ["/srv/state"] }), command: ["python3", "-c", writing] } },
    async (sandbox, { signal }) => {
      const wordAt = async (end: boolean) => {
        const files = (await sandbox.readState?.("desk", { end, signal })) ?? [];
        return files.map(({ path, content }) => [path, content.toString()]);
      };
      assert.deepEqual(await wordAt(false), [["srv/state/word", "working"]]);
      assert.deepEqual(await wordAt(true), [["srv/state/word", "ended"]]);
    },
  ),
  withServices(
    "in a pause of the sandbox alone a service apart goes on and can be asked and read, and both go on after a pause of all",
    { desk: serving("desk", [8080], { network: "apart", state: ["/srv/state"] }) },
    async (sandbox, { signal }) => {
      if (!sandbox.pause) return;
      await sandbox.pause("agent");
      for (const connections of ["1", "2"]) {
        assert.equal(await said(sandbox, "desk", 8080, signal), `desk ${connections}`);
        const [count] = (await sandbox.readState?.("desk", { end: false, signal })) ?? [];
        assert.equal(count?.content.toString(), "x".repeat(Number(connections)));
      }
      await sandbox.pause();
      await sandbox.resume?.();
      assert.equal((await sandbox.exec(["true"])).exit_code, 0);
      assert.equal(await said(sandbox, "desk", 8080, signal), "desk 3");
    },
  ),
  withServices(
    "a service apart may have been ended by the agent once a command has reached it, and not before",
    { desk: serving("desk", [8080], { network: "apart", expose: [8080] }), near: serving("near", [8083]) },
    async (sandbox) => {
      assert.equal(await sandbox.mayHaveEnded?.("desk"), false);
      assert.equal(await sandbox.mayHaveEnded?.("near"), true, "in its own network the agent reaches all of it");
      await sandbox.exec(["bash", "-c", "exec 3<>/dev/tcp/desk/8080; cat <&3"], { timeout_ms: 60_000 });
      assert.equal(await sandbox.mayHaveEnded?.("desk"), true);
    },
  ),
];
