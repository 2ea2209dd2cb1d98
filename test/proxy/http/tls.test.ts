/** Listening with HTTPS by a file pair. */
import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { createServer as createDoor } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { Agent, fetch } from "undici";
import { readTlsFiles } from "../../../proxy/index.ts";
import { makeCertificates } from "../../fakes/machine/certificates.ts";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";
import { cli } from "../../fakes/processes/cli.ts";
import { proxyAt } from "../../fakes/proxies/proxy-at.ts";
import { need } from "../../needs.ts";

const scratch = scratchFolder("tls");
const at = (name: string): string => join(scratch, name);

test("a pair that serves no TLS is refused in one sentence that names the file and what is wrong with it", async (t) => {
  if (!(await need(t, "openssl"))) return;
  await mkdir(scratch, { recursive: true });
  const server = { altNames: "DNS:localhost", usage: "server" } as const;
  makeCertificates(scratch, [
    { ...server, name: "one" },
    { ...server, name: "two" },
    { ...server, name: "old", days: -1 },
  ]);
  await writeFile(at("empty.pem"), "");
  assert.equal(await readTlsFiles({}), undefined);
  const pair = await readTlsFiles({ cert: at("one.pem"), key: at("one-key.pem") });
  assert.equal(pair?.cert.toString(), await readFile(at("one.pem"), "utf8"));
  const refused: [cert: string | undefined, key: string | undefined, param: string, message: RegExp][] = [
    ["one.pem", undefined, "tls.key", /^tls\.key is missing: tls\.cert and tls\.key are a pair$/],
    [undefined, "one-key.pem", "tls.cert", /^tls\.cert is missing/],
    ["nowhere.pem", "one-key.pem", "tls.cert", /^cannot read tls\.cert: ENOENT.*nowhere\.pem'$/],
    ["one-key.pem", "one-key.pem", "tls.cert", /one-key\.pem, which holds no certificate: give one in PEM form$/],
    ["old.pem", "old-key.pem", "tls.cert", /old\.pem, which was valid until .* GMT: renew it$/],
    ["one.pem", "empty.pem", "tls.key", /empty\.pem, which holds no private key: give one in PEM form without a passphrase$/],
    ["one.pem", "two-key.pem", "tls.key", /two-key\.pem, which is not the key of tls\.cert: give the two of one pair$/],
  ];
  for (const [cert, key, param, message] of refused)
    await assert.rejects(readTlsFiles({ cert: cert && at(cert), key: key && at(key) }), { code: "config_invalid", param, message });
  for (const verb of ["serve", "service"]) {
    const args = [verb, "-e", "http://127.0.0.1:1", "-o", at("runs"), "--tls-cert", at("one.pem"), "--tls-key", at("two-key.pem")];
    const { code, stderr } = await cli(args);
    assert.deepEqual([code, stderr.trim().split("\n").length, /not the key of tls\.cert/.test(stderr)], [2, 1, true], stderr);
  }
});

test("harnesses call the proxy by HTTPS under a name of its certificate, and a sandbox's door by HTTP", async (t) => {
  if (!(await need(t, "openssl"))) return;
  const folder = at("proxy");
  await mkdir(folder, { recursive: true });
  makeCertificates(folder, [{ name: "proxy", altNames: "DNS:*.example,DNS:localhost,IP:127.0.0.1", usage: "server" }]);
  const tls = await readTlsFiles({ cert: join(folder, "proxy.pem"), key: join(folder, "proxy-key.pem") });
  await using served = await proxyAt(() => ({ text: "a secret word" }), { host: "0.0.0.0", tls });
  assert.match(served.proxy.url, /^https:\/\/localhost:\d+$/);
  const { session, key } = await served.proxy.openSession({ any_model: true, relay: "live" });
  const dispatcher = new Agent({ connect: { ca: await readFile(join(folder, "ca.pem")) } });
  t.after(() => dispatcher.destroy());
  const body = JSON.stringify({ model: "any", stream: true, messages: [{ role: "user", content: "hi" }] });
  const request = { method: "POST", headers: { authorization: `Bearer ${key}`, "content-type": "application/json" }, body, dispatcher };
  const answer = await fetch(`${served.proxy.url}/v1/chat/completions`, request);
  assert.match(await answer.text(), /secret[\s\S]*\[DONE\]/);
  await assert.rejects(fetch(`${served.proxy.url}/v1/models`), ({ cause }) => cause.code === "UNABLE_TO_VERIFY_LEAF_SIGNATURE");
  const plain = served.proxy.url.replace("https", "http");
  await assert.rejects(fetch(`${plain}/v1/models`), /fetch failed/);
  const withoutKey = await fetch(`${served.proxy.url}/v1/models`, { dispatcher });
  assert.equal(withoutKey.status, 401);

  const door = createDoor((socket) => served.proxy.attach(session, socket)).listen(0, "127.0.0.1");
  t.after(() => door.close());
  await new Promise((resolve) => door.once("listening", resolve));
  const through = await fetch(`http://127.0.0.1:${(door.address() as { port: number }).port}/v1/models`);
  assert.equal(through.status, 200);
});
