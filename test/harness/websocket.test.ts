/** The real Codex, told that we speak its WebSocket mode: it asks for it, is refused at once, and goes on with events. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { test } from "node:test";
import { codex } from "../../harnesses/codex.ts";
import { proxyAt } from "../fakes/proxies/proxy-at.ts";
import { addFiles } from "../fakes/rollouts/add-script.ts";
import { installedPack } from "./installed-pack.ts";
import { runCommand, temporaryPlace, writeBelow } from "./run-harness.ts";

test("Codex in its WebSocket mode falls back to server-sent events", { timeout: 300_000 }, async (t) => {
  const pack = await installedPack(t, codex);
  if (pack === null) return;
  await using place = await temporaryPlace(addFiles);
  await using at = await proxyAt(() => ({ text: "I see." }));
  const client = await at.open();
  await using wire = await listenedTo(at.proxy.url);
  const { home, workdir } = place;
  const launch = codex.launch({
    instruction: "Look.",
    baseUrl: wire.url,
    apiKey: client.key,
    model: "scripted",
    home,
    workdir,
    pack: pack.folder,
    contextWindow: 32_768,
  });
  await writeBelow(home, launch.files);
  const [program = "", exec = "", ...rest] = launch.argv;
  const argv = [program, exec, "-c", "model_providers.alidade.supports_websockets=true", ...rest];
  const ended = await runCommand(argv, { cwd: workdir, env: { PATH: "/usr/bin:/bin", ...launch.env }, signal: t.signal });
  assert.equal(ended.exit_code, 0, ended.stderr);
  assert.match(ended.stdout, /I see\./);
  assert.deepEqual(wire.heard, [
    "GET /v1/responses HTTP/1.1",
    "HTTP/1.1 426 Upgrade Required",
    "POST /v1/responses HTTP/1.1",
    "HTTP/1.1 200 OK",
  ]);
  assert.equal((await client.trajectory()).calls.length, 1);
  assert.deepEqual(at.unseen, []);
});

/** The bytes go through as they are; the first lines of requests and answers are noted in the order of the wire. */
async function listenedTo(url: string) {
  const heard: string[] = [];
  const { hostname, port } = new URL(url);
  const sockets: Socket[] = [];
  const note = (chunk: Buffer) => heard.push(...(chunk.toString("latin1").match(/^(?:GET|POST|HTTP\/1\.1) [^\r\n]+/gm) ?? []));
  const server = createServer((near) => {
    const far = connect(Number(port), hostname);
    sockets.push(near, far);
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      from.on("data", note);
      from.on("error", () => to.destroy());
      from.pipe(to);
    }
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    heard,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
