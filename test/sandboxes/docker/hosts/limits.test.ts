/** What is known of an engine before it gets a sandbox. The engine is a script; the answers are those of Docker 20.10 and Podman 4.3. */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { join } from "node:path";
import { test } from "node:test";
import { connectEngine } from "../../../../sandboxes/docker/hosts/engine-connection.ts";
import { dockerBackend } from "../../../../sandboxes/docker.ts";
import { storageDriver } from "../../../../sandboxes/examine-machine.ts";
import { scratchFolder } from "../../../fakes/machine/scratch-folder.ts";

const scratch = scratchFolder("limits");
const docker = {
  "/_ping": {},
  "/version": { Components: [{ Name: "Engine" }] },
  "/info": { MemoryLimit: true, PidsLimit: true, Driver: "overlay2" },
};
const podman = { ...docker, "/version": { Components: [{ Name: "Podman Engine" }] } };
const controllers = (cgroupControllers: string[]) => ({ "/v4.0.0/libpod/info": { host: { cgroupControllers } } });

let engines = 0;

async function scripted(answers: Record<string, object>) {
  engines += 1;
  const path = join(scratch, `${engines}.sock`);
  const server = createServer(({ url = "" }, response) => {
    const body = Object.hasOwn(answers, url) ? answers[url] : null;
    response
      .writeHead(body === null ? 404 : 200, { "content-type": "application/json" })
      .end(JSON.stringify(body ?? { message: "page not found" }));
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  return Object.assign(server, { address: { host: `unix://${path}` } });
}

test("an engine that holds containers to no limits gets no sandboxes, also where it says that it does", async (t) => {
  const cases: [Record<string, object>, RegExp | null][] = [
    [docker, null],
    [{ ...docker, "/info": { MemoryLimit: false, PidsLimit: false } }, /no limit of memory and processes; .*cgroup v2/],
    [{ ...docker, "/info": { MemoryLimit: true, PidsLimit: false } }, /no limit of processes;/],
    [{ ...podman, ...controllers(["cpu", "memory", "pids"]) }, /Podman.*lose links and owners.*root's service on this Linux machine/],
    [{ ...podman, ...controllers([]) }, /no limit of memory and processes;/],
  ];
  for (const [answers, says] of cases) {
    await using engine = await scripted(answers);
    const reason = await dockerBackend({ engines: [engine.address] }).unavailable(t.signal);
    if (says === null) assert.equal(reason, null);
    else assert.match(reason ?? "it is ready", says);
  }
});

test("doctor names a storage driver that copies whole images", async () => {
  await using slow = await scripted({ ...podman, "/info": { Driver: "vfs" } });
  await using usual = await scripted(docker);
  assert.deepEqual(await storageDriver(connectEngine(usual.address)), { found: "overlay2", status: "ok", todo: null });
  const { found, status, todo } = await storageDriver(connectEngine(slow.address));
  assert.deepEqual([status, /^vfs: .*slow/.test(found), /fuse-overlayfs/.test(todo ?? "")], ["gap", true, true]);
});

test("an address that no engine can have is named with its value", () => {
  for (const host of ["ftp://a", "ssh://-oProxyCommand=x", "unix://", "tcp://"])
    assert.throws(() => connectEngine({ host }), { code: "config_invalid", message: new RegExp(`"${host}"`) });
  assert.throws(() => connectEngine({ host: "tcp://127.0.0.1:2376", cert_path: join(scratch, "none") }), {
    code: "config_invalid",
    message: /certificates cannot be read.*must hold ca\.pem, cert\.pem and key\.pem/,
  });
});
