/** From inside a container nothing answers but the door. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { createServer as createSecureServer } from "node:https";
import { createServer as createTcpServer, type Server } from "node:net";
import { networkInterfaces, tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { currentOwner } from "../../base/host/owner.ts";
import { Limits } from "../../base/schema/task.ts";
import { dockerBackend } from "../../sandboxes/docker.ts";
import { openNetwork, plainRules } from "../../sandboxes/network/open-network.ts";
import { nodeInside, nodeMount } from "../../sandboxes/node-mount.ts";
import { need } from "../needs.ts";

const signal = AbortSignal.timeout(900_000);
const run = promisify(execFile);

/** Tries every address given as an argument; prints `address: outcome` lines. */
const knock = `
const net = require("net"), dns = require("dns").promises, http = require("http");
const tcp = (address) => new Promise((resolve) => {
  const at = address.lastIndexOf(":");
  const socket = net.connect({ host: address.slice(0, at), port: Number(address.slice(at + 1)) });
  const done = (outcome) => { socket.destroy(); resolve([address, outcome]); };
  socket.setTimeout(2000, () => done("no answer")).on("connect", () => done("connected")).on("error", (error) => done(error.code));
});
const name = (host) => dns.lookup(host).then((r) => [host, r.address], (error) => [host, error.code]);
const door = () => new Promise((resolve) => http.get("http://127.0.0.1:4000/", (r) => { let t = ""; r.on("data", (c) => t += c).on("end", () => resolve(["door", t])); }).on("error", (e) => resolve(["door", e.code])));
(async () => {
  const [names, addresses] = [process.argv[1].split(","), process.argv.slice(2)];
  console.log(JSON.stringify(Object.fromEntries([await door(), ...(await Promise.all([...addresses.map(tcp), ...names.map(name)]))])));
})();`;

/** Prints the body of each address, on a line of its own; Node's own client finds the proxy by its variables. */
const fetchAll = `
process.env.NODE_TLS_REJECT_UNAUTHORIZED = "0";
process.removeAllListeners("warning");
(async () => { for (const url of process.argv.slice(1)) console.log(await fetch(url).then((r) => r.text(), () => "failed")); })();`;

/** TLS with a certificate of its own. */
async function secureWebsite() {
  const folder = await mkdtemp(join(tmpdir(), "alidade-website-"));
  const [key, cert] = [join(folder, "key.pem"), join(folder, "cert.pem")];
  const request = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=a.org"];
  await run("openssl", [...request, "-keyout", key, "-out", cert]);
  const options = { key: await readFile(key), cert: await readFile(cert) };
  await rm(folder, { recursive: true });
  const server = createSecureServer(options, (_request, response) => response.end("the website"));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  return Object.assign(server, { port: typeof address === "object" && address !== null ? address.port : 0 });
}

async function listening(host: string): Promise<Server & AsyncDisposable & { port: number }> {
  const server = createTcpServer((socket) => socket.on("error", () => {}).end("reached"));
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  const address = server.address();
  return Object.assign(server, { port: typeof address === "object" && address !== null ? address.port : 0 });
}

for (const kind of ["forwarder", "namespace"] as const) {
  test(`${kind} door: nothing but the door answers from inside, and the network that was opened, as long as it is`, {
    timeout: 300_000,
  }, async (t) => {
    if (!(await need(t, "docker"))) return;
    if (kind === "namespace" && !(await need(t, "engine-here"))) return;
    // Stand-ins for an engine (bound to all addresses) and for the control listener (bound to loopback).
    await using everywhere = await listening("0.0.0.0");
    await using loopback = await listening("127.0.0.1");
    await using sandbox = await dockerBackend({ door: kind }).create(
      {
        run_id: "isolation",
        owner: await currentOwner(),
        image: null,
        workdir: "/work",
        mounts: { [nodeInside]: await nodeMount() },
        env: {},
        limits: Limits.parse({}),
      },
      signal,
    );
    const server = createServer((_request, response) => response.end("the door"));
    await using _door = await sandbox.openDoor((socket) => void server.emit("connection", socket));
    await using website = await secureWebsite();
    const rules = {
      ...plainRules(),
      network: { resolve: async () => ["127.0.0.1"], mayConnect: (address: string) => address === "127.0.0.1" },
    };
    const network = await openNetwork(sandbox, "agent", { allow: [`a.org:${website.port}`] }, rules);

    const hostAddresses = Object.values(networkInterfaces()).flatMap((list) =>
      (list ?? []).filter(({ family }) => family === "IPv4").map(({ address }) => address),
    );
    const hosts = [...new Set([...hostAddresses, "127.0.0.1", "172.17.0.1", "172.18.0.1", "169.254.169.254", "1.1.1.1"])];
    const addresses = hosts.flatMap((host) => [`${host}:${everywhere.port}`, `${host}:${loopback.port}`]);
    const names = ["host.docker.internal", "gateway.docker.internal", "example.com"];
    const node = `${nodeInside}/bin/node`;
    const { stdout, stderr } = await sandbox.exec([node, "-e", knock, names.join(","), ...addresses], { timeout_ms: 60_000 });
    const outcomes = JSON.parse(stdout || `{"error": ${JSON.stringify(stderr)}}`) as Record<string, string>;

    assert.equal(outcomes.door, "the door");
    const addressesInside = ["https://a.org", "https://b.org", "https://127.0.0.1", "http://127.0.0.1"].map(
      (url) => `${url}:${website.port}/`,
    );
    const fetched = async () => (await sandbox.exec([node, "-e", fetchAll, ...addressesInside], { env: network.env })).stdout;
    assert.equal(await fetched(), "the website\nfailed\nfailed\nfailed\n");
    assert.deepEqual(
      rules.log.use().destinations.map(({ host }) => host),
      ["a.org"],
    );
    await network[Symbol.asyncDispose]();
    assert.equal(await fetched(), "failed\nfailed\nfailed\nfailed\n");
    for (const address of addresses) assert.match(outcomes[address] ?? "", /^(ENETUNREACH|ECONNREFUSED|EHOSTUNREACH)$/, address);
    for (const name of names) assert.match(outcomes[name] ?? "", /^(EAI_AGAIN|ENOTFOUND)$/, name);
    // The same knocks from outside are answered: a way out would have been seen.
    const script = [process.execPath, ["-e", knock, "localhost", `127.0.0.1:${everywhere.port}`, `127.0.0.1:${loopback.port}`]] as const;
    const outside = JSON.parse((await run(...script)).stdout) as Record<string, string>;
    assert.equal(outside[`127.0.0.1:${everywhere.port}`], "connected");
    assert.equal(outside[`127.0.0.1:${loopback.port}`], "connected");

    const devices = (await sandbox.exec(["cat", "/proc/net/dev"])).stdout
      .split("\n")
      .slice(2)
      .filter((line) => line.trim() !== "");
    assert.deepEqual(
      devices.map((line) => line.trim().split(":")[0]).filter((device) => !/^(tunl|sit|gre|ip6)/.test(device ?? "")),
      ["lo"],
    );
  });
}

test("inside there is no engine socket, no host file, no root, no capability, and the root is read-only", {
  timeout: 300_000,
}, async (t) => {
  if (!(await need(t, "docker"))) return;
  const mount = await nodeMount();
  await using sandbox = await dockerBackend().create(
    {
      run_id: "isolation",
      owner: await currentOwner(),
      image: null,
      workdir: "/work",
      mounts: { [nodeInside]: mount },
      env: {},
      limits: Limits.parse({}),
    },
    signal,
  );
  const inside = async (script: string, user: "agent" | "root" = "agent") => (await sandbox.exec(["sh", "-c", script], { user })).stdout;
  assert.equal(await inside("ls /var/run/docker.sock /run/docker.sock /run/podman 2>/dev/null"), "");
  assert.equal(await inside(`ls ${import.meta.dirname} 2>/dev/null`), "");
  assert.equal(await inside("id -u; id -un"), "1000\nagent\n");
  for (const user of ["agent", "root"] as const) {
    const status = await inside("cat /proc/self/status", user);
    for (const set of ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"])
      assert.match(status, new RegExp(`^${set}:\\s+0+$`, "m"), `${user} ${set}`);
    assert.match(status, /^NoNewPrivs:\s+1$/m);
    // Where the engine is on another machine the root is not closed, and what belongs to root stays root's.
    const closed = sandbox.facts.writable === "workdir" || user === "agent" ? ["/x", "/usr/bin/x", "/etc/x"] : [];
    for (const path of [...closed, `${nodeInside}/bin/x`, "/opt/alidade/door/x", "/etc/passwd", "/etc/hosts"]) {
      assert.equal(await inside(`: 2>/dev/null >>${path} && echo written`, user), "", `${user} ${path}`);
    }
  }
  assert.equal(await inside("mount -t tmpfs x /mnt 2>/dev/null && echo mounted", "root"), "");
  // Not by way of the engine's process list either: only the sandbox's own processes are there.
  assert.doesNotMatch(await inside("ps -A -o args"), /dockerd|containerd/);
  assert.match(await inside("hostname"), /^sandbox$/m);
  // Docker's own choice for its Tmpfs.
  for (const place of ["/run", "/var/tmp", "/dev/shm"])
    assert.match(await inside(`grep " ${place} " /proc/self/mounts`), /[ ,]noexec[ ,]/, place);
});
