/** Texts of sampled tokens: a line an id, from any engine and over restarts of the proxy. */
import assert from "node:assert/strict";
import { mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { ChunkReader } from "../../../engines/vllm/chunks.ts";
import { DiskStore, VocabularyStore } from "../../../proxy/store/index.ts";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";
import { proxyAt } from "../../fakes/proxies/proxy-at.ts";
import { serveView } from "../../fakes/view/served-view.ts";

const scratch = scratchFolder("vocabulary");
const never = (error: unknown): never => {
  throw error;
};
const own = (id: number, text: string) => ({ id, text, bytes: [...Buffer.from(text)] });

async function linesOf(path: string): Promise<unknown[]> {
  return (await readFile(path, "utf8"))
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as unknown);
}

for (const live of [false, true])
  test(`a run keeps the text of each sampled token once, also over a restart (${live ? "live" : "buffered"})`, async () => {
    const folder = join(scratch, `run-${live}`);
    const replies = ["abba", "cab"];
    const options = { store: new DiskStore(join(folder, "sessions")), vocabulary: join(folder, "vocabulary") };
    let tokenizer = "";
    for (const text of replies) {
      await using at = await proxyAt(() => ({ text }), options);
      tokenizer = at.proxy.facts.fingerprints?.tokenizer ?? "";
      const client = await at.open({ relay: live ? "live" : "buffered" });
      await client.say([{ role: "user", content: "hello" }]);
      await client.say([{ role: "user", content: "again" }]);
      await client.settled();
      assert.deepEqual(at.unseen, []);
    }
    const path = join(folder, "vocabulary", `${tokenizer}.jsonl`);
    assert.deepEqual(await linesOf(path), [
      { id: 97, text: "a" },
      { id: 98, text: "b" },
      { id: 1, text: "⏹" },
      { id: 99, text: "c" },
    ]);
    assert.equal((await stat(path)).mode & 0o777, 0o600);
    await using view = await serveView(folder);
    assert.equal(view.reader.rollouts.length, 2);
    for (const { id } of view.reader.rollouts) assert.match(await view.text(`tokens?id=${id}&from=0`), /⏹/, "the tokens page shows texts");
  });

test("an engine whose tokens have texts of 1 MB costs no call, and none of them is kept", async () => {
  const folder = join(scratch, "long");
  await using at = await proxyAt(() => ({ text: "abc", quirk: "long_token_texts" }), { vocabulary: folder });
  const client = await at.open();
  assert.equal((await client.say([{ role: "user", content: "hello" }])).content, "abc");
  assert.equal((await stat(join(folder, `${at.proxy.facts.fingerprints?.tokenizer}.jsonl`))).size, 0);
  assert.deepEqual(at.unseen, []);
});

test("a folder that cannot be written is reported once, and costs no call", async () => {
  const folder = join(scratch, "blocked");
  await writeFile(folder, "a file stands where the folder should be");
  await using at = await proxyAt(() => ({ text: "abc" }), { vocabulary: folder });
  const client = await at.open();
  for (const content of ["hello", "again"]) assert.equal((await client.say([{ role: "user", content }])).content, "abc");
  assert.equal(at.unseen.length, 1);
});

test("ids that no vocabulary has, placeholders and texts that are not a token's own are left out", async () => {
  await using store = new VocabularyStore(join(scratch, "strange"), never);
  const file = await store.of("0123456789abcdef");
  assert.ok(file);
  for (const id of [2 ** 20, 1e12, Number.MAX_SAFE_INTEGER]) assert.equal(file.lacks(id), false);
  file.keep([
    ...[own(1e12, "far"), own(2 ** 20, "far"), own(5, "token_id:5"), own(6, "")],
    ...[own(7, "x".repeat(2_000)), { id: 8, text: "\u{fffd}", bytes: null }, { id: null, text: "a", bytes: [97] }],
    ...[own(9, " up"), own(9, "other"), { id: 10, text: "\u{fffd}", bytes: [226, 130] }],
  ]);
  assert.deepEqual(await linesOf(join(scratch, "strange", "0123456789abcdef.jsonl")), [
    { id: 9, text: " up" },
    { id: 10, bytes: [226, 130] },
  ]);
  // Those that were no texts at all may come again; those whose text cannot be kept are not parsed again.
  assert.deepEqual(
    [5, 6, 7, 8, 9, 10].map((id) => file.lacks(id)),
    [true, true, false, false, false, false],
  );
});

test("a full vocabulary of long texts stops at a size that a viewer can hold", async () => {
  const folder = join(scratch, "full");
  await using store = new VocabularyStore(folder, never);
  const file = await store.of("full");
  assert.ok(file);
  const text = "x".repeat(1_000);
  for (let id = 0; id < 100_000; id += 1_000) file.keep(Array.from({ length: 1_000 }, (_, at) => own(id + at, text)));
  const { size } = await stat(join(folder, "full.jsonl"));
  assert.ok(size > 60 * 2 ** 20 && size <= 64 * 2 ** 20, `${size} bytes`);
  assert.equal(file.lacks(500_000), false);
});

test("nothing is written without a fingerprint, nor for the seventeenth one, nor under a name that leads elsewhere", async () => {
  await using store = new VocabularyStore(join(scratch, "names"), never);
  assert.deepEqual([await store.of(null), await store.of("../out"), await store.of("")], [null, null, null]);
  for (let at = 0; at < 16; at++) assert.ok(await store.of(`tokenizer${at}`));
  assert.equal(await store.of("tokenizer16"), null);
  assert.ok(await store.of("tokenizer3"));
});

test("a torn or damaged line costs its own token, which is kept when it comes again", async () => {
  const folder = join(scratch, "torn");
  await mkdir(folder);
  await writeFile(join(folder, "t.jsonl"), '{"id":1,"text":"a"}\nnot json\n{"id":2,"te');
  await using store = new VocabularyStore(folder, never);
  (await store.of("t"))?.keep([own(1, "a"), own(2, "b")]);
  assert.match(await readFile(join(folder, "t.jsonl"), "utf8"), /^\{"id":1,"text":"a"\}\nnot json\n\{"id":2,"text":"b"\}\n$/);
});

test("a token behind a part of a character is not given the whole character's text", () => {
  const texts = new Map<number | null, string | null>();
  const reader = new ChunkReader("http://engine", undefined, {
    lacks: (id) => !texts.has(id),
    keep: (tokens) => {
      for (const { id, text, bytes } of tokens) texts.set(id, bytes && text);
    },
  });
  const chunk = (id: number, token: string) =>
    `{"id":"c","object":"o","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"x"},"logprobs":{"content":[{"token":${JSON.stringify(token)},"logprob":-1,"bytes":null,"top_logprobs":[]}]},"finish_reason":null,"token_ids":[${id}]}]}`;
  for (const [id, token] of [
    [1, "a"],
    [2, "\u{fffd}"],
    [3, "é"],
    [4, "ü"],
    [1, "another"],
  ] as const)
    reader.read(Buffer.from(chunk(id, token)), []);
  assert.deepEqual(
    [...texts],
    [
      [1, "a"],
      [2, null],
      [3, null],
      [4, "ü"],
    ],
  );
});
