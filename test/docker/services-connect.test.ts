/** Connections of the host to services, by every way in. */
import assert from "node:assert/strict";
import { buffer } from "node:stream/consumers";
import { test } from "node:test";
import { currentOwner } from "../../base/host/owner.ts";
import { Environment, Limits } from "../../base/schema/task.ts";
import { baseImage, ensureBaseImage } from "../../sandboxes/docker/images/made/base-image.ts";
import { dockerBackend } from "../../sandboxes/docker.ts";
import { specOf } from "../../sandboxes/task-spec.ts";
import { need } from "../needs.ts";

const signal = AbortSignal.timeout(900_000);

/** At 8080 it greets before it is spoken to, and then sends back all that it gets, also after the other side has ended. */
const echo = `
import socket, threading
server = socket.create_server(("127.0.0.1", 8080)); server.listen(512)
open("/tmp/up", "w")
def serve(client):
    client.sendall(b"hello ")
    while data := client.recv(65536): client.sendall(data)
    client.sendall(b" bye"); client.close()
while True: threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()`;

const service = {
  image: baseImage,
  command: ["python3", "-c", echo],
  healthcheck: { command: ["test", "-e", "/tmp/up"], interval_seconds: 0.1, retries: 3000 },
  memory_mb: 128,
  disk_mb: 16,
};

for (const door of ["namespace", "forwarder"] as const)
  test(`${door}: a connection to a service greets, carries a megabyte both ways, and ends with the sandbox`, {
    timeout: 300_000,
  }, async (t) => {
    if (!(await need(t, "docker"))) return;
    if (door === "namespace" && !(await need(t, "engine-here"))) return;
    await ensureBaseImage({ signal });
    const environment = Environment.parse({ services: { desk: service } });
    const spec = specOf(
      { environment, limits: Limits.parse({ memory_mb: 256, disk_mb: 64 }) },
      { run_id: "connect", owner: await currentOwner() },
    );
    await using sandbox = await dockerBackend({ door }).create(spec, signal);

    const sent = Buffer.alloc(2 ** 20, "0123456789abcdef");
    const many = Array.from({ length: 20 }, async () => {
      const socket = await sandbox.connect("desk", 8080, signal);
      socket.end(sent);
      assert.ok((await buffer(socket)).equals(Buffer.concat([Buffer.from("hello "), sent, Buffer.from(" bye")])));
    });
    await Promise.all(many);

    await assert.rejects(sandbox.connect("desk", 8081, signal), {
      code: "sandbox_error",
      message: /The service desk took no connection at its port 8081/,
    });
    await assert.rejects(sandbox.connect("other", 8080, signal), { code: "not_found" });
    await assert.rejects(sandbox.connect("desk", 8080, AbortSignal.abort(new Error("enough"))), /enough/);

    const open = await sandbox.connect("desk", 8080, signal);
    open.on("error", () => undefined);
    const closed = new Promise((resolve) => open.once("close", resolve));
    open.resume();
    await sandbox[Symbol.asyncDispose]();
    await closed;
    await assert.rejects(sandbox.connect("desk", 8080, signal));
  });
