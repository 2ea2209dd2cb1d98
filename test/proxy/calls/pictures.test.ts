/** Pictures stand once on the disk: the log names them by the hash of their bytes. */
import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { mkdtemp, readdir, readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { MediaFolder } from "../../../base/media/media-folder.ts";
import { DiskStore } from "../../../proxy/store/index.ts";
import { proxyAt } from "../../fakes/proxies/proxy-at.ts";
import { pngOf, pngUrl } from "../../fakes/records/png.ts";

const shown = (url: string) => ({ role: "user", content: [{ type: "image_url", image_url: { url, detail: "high" } }] });

test("each picture of a session is one file, the log names it, and the engine gets the URL that was sent", async () => {
  const folder = await mkdtemp(join(tmpdir(), "alidade-pictures-"));
  const store = new DiskStore(folder);
  await using at = await proxyAt(() => ({ text: "ok" }), { store });
  const client = await at.open();
  const [one, two] = [pngUrl(64, 40), pngUrl(64, 40, [0, 0, 200])];
  const messages: unknown[] = [];
  for (const url of [one, two, one]) {
    messages.push(shown(url));
    messages.push(await client.say(messages));
  }
  const sent = at.engine.requests.map((request) => JSON.stringify(request.messages).match(/data:image\/png;base64,[\w+/=]+/g));
  assert.deepEqual(sent, [[one], [one, two], [one, two, one]]);
  const hashes = [pngOf(64, 40), pngOf(64, 40, [0, 0, 200])].map((bytes) => hash("sha256", bytes));
  assert.deepEqual((await readdir(join(folder, "media"))).sort(), hashes.toSorted());
  const log = await readFile(join(folder, `${client.sessionId}.jsonl`), "utf8");
  assert.ok(!log.includes("base64,"));
  const parts = Object.values((await client.trajectory()).messages).flatMap(({ parts }) => parts.filter(({ type }) => type === "image"));
  const facts = { media_type: "image/png", width: 64, height: 40, detail: "high" };
  assert.deepEqual(
    parts,
    hashes.map((sha256, index) => ({
      type: "image",
      sha256,
      bytes: pngOf(64, 40, index === 1 ? [0, 0, 200] : undefined).length,
      ...facts,
    })),
  );
});

test("the bytes of a picture are there before the line that names them, and a picture that cannot be kept is no call", async () => {
  const folder = await mkdtemp(join(tmpdir(), "alidade-pictures-"));
  const store = new DiskStore(folder);
  const order: string[] = [];
  class Watched extends MediaFolder {
    override keep(sha256: string, bytes: Buffer): void {
      if (order.length > 0) throw Object.assign(new Error("full"), { code: "ENOSPC" });
      super.keep(sha256, bytes);
      order.push("picture");
    }
  }
  const media = new Watched(join(folder, "media"));
  await using at = await proxyAt(() => ({ text: "ok" }), {
    store: {
      name: "disk",
      media,
      open: (id) => store.open(id),
      replace: (id, entries) => store.replace(id, entries),
      read: (id) => store.read(id),
      list: () => store.list(),
    },
  });
  const client = await at.open();
  await client.say([shown(pngUrl(8, 8))]);
  order.push("call");
  assert.deepEqual(order, ["picture", "call"]);
  const { status } = await client.post("/v1/chat/completions", { model: "m", messages: [shown(pngUrl(9, 9))] });
  assert.ok(status >= 500, String(status));
  assert.equal(at.engine.requests.length, 1);
});

test("what is no picture stays in the log as it was sent", async () => {
  await using at = await proxyAt(() => ({ text: "ok" }));
  const client = await at.open();
  const svg = `data:image/svg+xml;base64,${Buffer.from("<svg/>").toString("base64")}`;
  await client.say([shown(svg)]);
  const [message] = Object.values((await client.trajectory()).messages);
  assert.deepEqual(message?.parts, [{ type: "image", url: svg, detail: "high" }]);
});

test("pictures count in what a session may record", async () => {
  await using at = await proxyAt(() => ({ text: "ok" }));
  const client = await at.open({ budgets: { max_log_bytes: 4_000 } });
  const noise = Buffer.concat([pngOf(4, 4), Buffer.alloc(5_000, 7)]);
  await client.say([shown(`data:image/png;base64,${noise.toString("base64")}`)]);
  const { status } = await client.post("/v1/chat/completions", { model: "m", messages: [{ role: "user", content: "more" }] });
  assert.notEqual(status, 200);
});
