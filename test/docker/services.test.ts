/** Services beside a sandbox: they are reached by name, and nothing else is, from the sandbox or from them. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { stringify } from "yaml";
import { AlidadeError } from "../../base/errors.ts";
import { currentOwner } from "../../base/host/owner.ts";
import { Environment, Limits } from "../../base/schema/task.ts";
import { checkTask } from "../../graders/check.ts";
import { baseImage, ensureBaseImage } from "../../sandboxes/docker/images/made/base-image.ts";
import { docker } from "../../sandboxes/docker.ts";
import { openNetwork, plainRules } from "../../sandboxes/network/open-network.ts";
import type { Sandbox } from "../../sandboxes/sandbox.ts";
import { specOf } from "../../sandboxes/task-spec.ts";
import { loadTasks } from "../../tasks/load-tasks.ts";
import { harborFolder, harborTasks } from "../fakes/harbor-tasks.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";
import { need } from "../needs.ts";

const signal = AbortSignal.timeout(900_000);
const run = promisify(execFile);
const folder = scratchFolder("services");
const limits = Limits.parse({ memory_mb: 256, disk_mb: 64 });
const small = { image: baseImage, memory_mb: 64, disk_mb: 16, pids: 32 };
const soon = { interval_seconds: 0.1, retries: 3000 };

/** Answers each request with $WORD on its port, after it has asked the address in $FIRST, where there is one. */
const server = `
import http.server, os, urllib.request
if os.environ.get("FIRST"): urllib.request.urlopen(os.environ["FIRST"]).read()
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(os.environ["WORD"].encode())
    def log_message(self, *a): pass
server = http.server.HTTPServer(("0.0.0.0", int(os.environ["PORT"])), Answer)
open("/tmp/up", "w"); server.serve_forever()`;

/** Counts, in a file of its volume, how often it was asked at /. */
const counter = `
import http.server
class Count(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/": open("/srv/data/asked", "a").write("x")
        self.send_response(200); self.end_headers()
        if self.path == "/": self.wfile.write(open("/srv/data/asked").read().encode())
    def log_message(self, *a): pass
server = http.server.HTTPServer(("", 8080), Count)
open("/tmp/up", "w"); server.serve_forever()`;
const healthcheck = { test: ["CMD", "test", "-e", "/tmp/up"], interval: "100ms", retries: 3000 };

const fetching = (url: string) => `import urllib.request as r; print(r.urlopen(${JSON.stringify(url)}).read().decode())`;

function serving(port: number, word: string, more: object = {}) {
  const env = { PORT: String(port), WORD: word, ...("first" in more && { FIRST: String(more.first) }) };
  return { ...small, command: ["python3", "-c", server], env, healthcheck: { command: ["test", "-e", "/tmp/up"], ...soon } };
}

async function sandboxWith(services: unknown, run_id = "services", more: Partial<Limits> = {}): Promise<Sandbox> {
  const environment = Environment.parse({ services });
  return docker.create(specOf({ environment, limits: { ...limits, ...more } }, { run_id, owner: await currentOwner() }), signal);
}

async function python(sandbox: Sandbox, code: string, env: Record<string, string> = {}): Promise<string> {
  const { stdout, stderr } = await sandbox.exec(["python3", "-c", code], { env });
  return (stdout + stderr).trim();
}

/** What each probe comes to, as JSON: connections, packets past the sockets, names, and what the process may do. */
const probes = (addresses: string[]) => `
import json, socket
said = {}
def tried(name, probe):
    try: said[name] = str(probe())
    except OSError as error: said[name] = "no"
def tcp(address):
    host, port = address.rsplit(":", 1)
    socket.create_connection((host, int(port)), 2).close(); return "connected"
for address in ${JSON.stringify(addresses)}: tried(address, lambda: tcp(address))
tried("packets", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0806)))
tried("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
tried("other", lambda: socket.gethostbyname("example.org"))
tried("dns", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x" * 12, ("10.255.255.53", 53)))
tried("hosts", lambda: open("/etc/hosts", "a"))
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
said["status"] = [status[key].strip() for key in ("CapEff", "CapBnd", "NoNewPrivs", "Seccomp")]
said["devices"] = [line.split(":")[0].strip() for line in open("/proc/net/dev") if ":" in line]
print(json.dumps(said))`;

test("services start in their order and are reached by name; the host and other sandboxes' services are reached from neither side", {
  timeout: 300_000,
}, async (t) => {
  if (!(await need(t, "docker"))) return;
  await ensureBaseImage({ signal });
  const run_id = `services${process.pid}`;
  const services = (word: string) => ({
    app: {
      ...serving(8081, `app of ${word}`, { first: "http://store:8080" }),
      aliases: ["web"],
      depends_on: { store: "ready", once: "ready" },
    },
    store: { ...serving(8080, `store of ${word}`), user: "1234" },
    once: { ...small, command: ["true"], healthcheck: "completed" },
  });
  await using everywhere = createServer((socket) => socket.on("error", () => undefined).end());
  await new Promise<void>((resolve) => everywhere.listen(0, "0.0.0.0", resolve));
  const { port } = everywhere.address() as { port: number };
  await using scope = new AsyncDisposableStack();
  const made = [services("one"), { store: services("other").store }].map(async (some) => scope.use(await sandboxWith(some, run_id)));
  const [one, other] = await Promise.all(made);
  assert.ok(one && other);

  for (const [sandbox, url, answer] of [
    [one, "http://store:8080", "store of one"],
    [one, "http://app:8081", "app of one"],
    [one, "http://web:8081", "app of one"],
    [other, "http://store:8080", "store of other"],
  ] as const)
    assert.equal(await python(sandbox, fetching(url)), answer);
  assert.equal((await other.exec(["python3", "-c", fetching("http://127.0.0.1:8081")])).exit_code, 1, "the other one's app is not there");
  assert.deepEqual(one.facts.services?.map(({ name, image }) => [name, image]).sort(), [
    ["app", baseImage],
    ["once", baseImage],
    ["store", baseImage],
  ]);

  const own = Object.values(networkInterfaces()).flatMap(
    (list) => list?.flatMap(({ family, address }) => (family === "IPv4" ? [address] : [])) ?? [],
  );
  const addresses = [...new Set(own), "169.254.169.254", "172.17.0.1"].map((address) => `${address}:${port}`);
  const listed = await run("docker", ["ps", "-q", "--filter", `label=alidade.run=${run_id}`, "--filter", "name=-(app|store)$"]);
  const beside = listed.stdout.trim().split("\n");
  assert.equal(beside.length, 3);
  const fromServices = beside.map(async (id) => (await run("docker", ["exec", id, "python3", "-c", probes(addresses)])).stdout);
  for (const said of await Promise.all([python(one, probes(addresses)), ...fromServices])) {
    const { status, devices, ...tried } = JSON.parse(said) as { status: string[]; devices: string[] } & Record<string, string>;
    assert.deepEqual(new Set(Object.values(tried)), new Set(["no"]), said);
    assert.deepEqual(status, ["0000000000000000", "0000000000000000", "1", "2"]);
    assert.deepEqual(
      devices.filter((device) => !/^(tunl|sit|gre|ip6)/.test(device)),
      ["lo"],
    );
  }

  // A proxy would look for the names of the services outside.
  await using network = await openNetwork(one, "agent", { allow: ["a.org"] }, plainRules());
  assert.equal(await python(one, fetching("http://app:8081"), network.env), "app of one");

  await scope.disposeAsync();
  assert.equal((await run("docker", ["ps", "-aq", "--filter", `label=alidade.run=${run_id}`])).stdout, "", "nothing is left of them");
});

test("a service that ends, never gets ready or changes its user is a failure with its name and words, and nothing is left", {
  timeout: 300_000,
}, async (t) => {
  if (!(await need(t, "docker"))) return;
  await ensureBaseImage({ signal });
  const run_id = `failing${process.pid}`;
  const failing = {
    'The service db, started as "sh -c .*" ended with 1.*: setuid not permitted A service has no capabilities': {
      command: ["sh", "-c", `python3 -c 'import os; os.setuid(5)' 2>/dev/null || { echo setuid not permitted; exit 1; }`],
      healthcheck: { command: ["false"], ...soon },
    },
    'The service db was not ready after 0.3 s: the healthcheck "sh -c echo no rows; exit 4" ended with 4.*: no rows ': {
      command: ["sleep", "600"],
      healthcheck: { command: "echo no rows; exit 4", interval_seconds: 0.1, retries: 3 },
    },
    'The service db, started as "sh -c exit 7" ended with 7': { command: ["sh", "-c", "exit 7"], healthcheck: "completed" },
    'The service db, started as "true" ended with 0, and is to go on': {
      command: ["true"],
      healthcheck: { command: ["false"], interval_seconds: 0.1, retries: 300_000 },
    },
    "The service db did not complete within 3 s \\(limits.init_seconds\\)": { command: ["sleep", "600"], healthcheck: "completed" },
    "The service db: .*no-such": { image: "127.0.0.1:1/no-such:1", command: ["true"] },
  };
  const refused = Object.entries(failing).map(async ([says, db]) => {
    const error = await sandboxWith({ db: { ...small, ...db }, late: { ...small, depends_on: { db: "ready" } } }, run_id, {
      init_seconds: 3,
    }).then(
      (sandbox) => t.after(() => sandbox[Symbol.asyncDispose]()),
      (failure: unknown) => failure,
    );
    assert.ok(error instanceof AlidadeError, says);
    assert.match(error.message, new RegExp(says, "s"));
    assert.deepEqual([error.owner, error.param], ["infrastructure", "environment.services.db"], says);
  });
  await Promise.all(refused);
  assert.equal((await run("docker", ["ps", "-aq", "--filter", `label=alidade.run=${run_id}`])).stdout, "");
});

test("a service's folders belong to the user of its image, also where the agent's uid is another name there", {
  timeout: 300_000,
}, async (t) => {
  if (!(await need(t, "docker"))) return;
  await ensureBaseImage({ signal });
  await writeFile(join(folder, "passwd"), "root:x:0:0::/root:/bin/sh\napp:x:1000:1000::/:/bin/sh\nagent:x:77:77::/:/bin/sh\n");
  const dockerfile = `FROM ${baseImage}\nCOPY passwd /etc/passwd\nUSER app\n`;
  await writeFile(join(folder, "Dockerfile"), dockerfile);
  const image = `alidade-test/owner:${process.pid}`;
  await run("docker", ["build", "--quiet", "--tag", image, folder]);
  t.after(() => run("docker", ["rmi", "--force", image]));
  const touching = { ...small, image, command: ["touch", "/srv/data/it"], folders: ["/srv/data"], healthcheck: "completed" };
  await using sandbox = await sandboxWith({ app: touching, other: { ...touching, user: "agent" } });
  assert.equal(sandbox.facts.services?.length, 2);
});

test("a service at the door's port is named as the reason that it cannot be opened", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "docker"))) return;
  await ensureBaseImage({ signal });
  await using sandbox = await sandboxWith({ app: serving(4000, "here") });
  await assert.rejects(
    sandbox.openDoor((socket) => socket.destroy()),
    /4000.*a service of the task listens there.*3128/s,
  );
});

test("a Harbor task with a compose file has its services while its agent works, and new ones while it is graded", {
  timeout: 300_000,
}, async (t) => {
  if (!(await need(t, "docker"))) return;
  await ensureBaseImage({ signal });
  const db = {
    image: baseImage,
    user: "1000",
    command: ["python3", "-c", counter],
    volumes: ["data:/srv/data"],
    mem_limit: "64m",
    healthcheck,
  };
  const compose = { services: { main: { depends_on: { db: { condition: "service_healthy" } } }, db }, volumes: { data: null } };
  const files = {
    ...harborTasks[0]?.files,
    "environment/docker-compose.yaml": stringify(compose),
    "solution/solve.sh": `#!/bin/sh\npython3 -c '${fetching("http://db:8080")}' > /app/count\n`,
    // The count begins again: what the agent did to its own service is not there.
    "tests/test.sh": `#!/bin/sh\npython3 -c '${fetching("http://db:8080")}' | cmp - /app/count && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt\n`,
  };
  const [task] = await loadTasks(await harborFolder({ one: files }), { signal });
  assert.ok(task);
  const { runs } = await checkTask(task, docker, { run_id: "services", owner: await currentOwner(), times: 1, signal });
  assert.deepEqual(
    runs.map(({ verdict }) => verdict.reward),
    [1, 0],
    JSON.stringify(runs),
  );
});
