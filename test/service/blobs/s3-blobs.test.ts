/** Blobs in a bucket, at a server of S3's API. It knows keys by their ids, and does not compare signatures. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { readdir, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { getPacked, openBlobs, openOwnBlobs, piecesOf, putPacked } from "../../../service/blobs/index.ts";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";
import { startS3 } from "../../interop/s3/start.ts";
import { need } from "../../needs.ts";

const scratch = scratchFolder("s3-blobs");
const keys = { AWS_ACCESS_KEY_ID: "S3RVER", AWS_SECRET_ACCESS_KEY: "S3RVER" };

test("a record in a bucket comes back as it was put, also after the server was killed meanwhile", async (t) => {
  if (!(await need(t, "s3"))) return;
  await using server = await startS3(join(scratch, "whole"));
  const blobs = openOwnBlobs(`s3://${server.bucket}/a/run-7/`, server.env);
  const record = { ids: [1, 2, 3], text: "ü".repeat(100_000) };
  const at = await putPacked(blobs, "set1/roll1/1", record);
  assert.deepEqual(await putPacked(blobs, "set1/roll1/1", record), at);
  assert.deepEqual(JSON.parse(await getPacked(blobs, at)), record);
  assert.equal(await blobs.get("set1/none.json.zst"), null);
  await assert.rejects(getPacked(blobs, { ...at, key: "set1/none.json.zst" }), { code: "store_error", message: /has no set1\/none/ });
  await assert.rejects(getPacked(blobs, { ...at, sha256: "0" }), { code: "store_error", message: /damaged/ });
  await assert.rejects(blobs.get("../x.json.zst"), { code: "internal" });

  for (const [name, attempts] of [
    ["set1/roll", 1],
    ["set1/roll3", 3],
  ] as const)
    for (let attempt = 1; attempt <= attempts; attempt++) await putPacked(blobs, `${name}/${attempt}`, { attempt });
  const kept = await putPacked(blobs, "set1/roll33/1", record);
  const removed = await putPacked(blobs, "set1/roll3/9", record);
  await blobs.removeBelow("set1/roll3");
  await blobs.removeBelow("set1/roll3");
  assert.equal(await blobs.get(removed.key), null);
  assert.deepEqual(JSON.parse(await getPacked(blobs, kept)), record, "a name that begins alike is another one's");
  await assert.rejects(blobs.removeBelow("set1"), { code: "internal" });
  for (const key of [1, 2, 10].map((attempt) => `set1/roll33/logs/${attempt}-1.json.zst`)) await blobs.put(key, Buffer.from(key));
  await blobs.removeLogs("set1/roll33", 2);
  for (const attempt of [1, 2]) assert.equal(await blobs.get(`set1/roll33/logs/${attempt}-1.json.zst`), null);
  assert.notEqual(await blobs.get("set1/roll33/logs/10-1.json.zst"), null, "another node may be at work on a later attempt");
  assert.deepEqual(JSON.parse(await getPacked(blobs, kept)), record, "its trajectory stays");

  await server.kill();
  const written = putPacked(blobs, "set1/roll2/1", record);
  await server.restart();
  assert.deepEqual(JSON.parse(await getPacked(blobs, await written)), record);
});

test("bytes that come in pieces are kept whole or not at all, in a bucket as in a folder", async (t) => {
  if (!(await need(t, "s3"))) return;
  await using server = await startS3(join(scratch, "pieces"));
  for (const word of [join(scratch, "folder"), `s3://${server.bucket}/b`]) {
    const blobs = openOwnBlobs(word, server.env);
    const { key } = await putPacked(blobs, "set1/made/1", { ids: Array.from({ length: 2_000 }, (_, at) => at * at) });
    const bytes = (await blobs.get(key)) as Buffer;
    const other = key.replace("made", "sent");
    async function* pieces(length = bytes.length) {
      for (let at = 0; at < length; at += 7) yield bytes.subarray(at, Math.min(at + 7, length));
    }
    await assert.rejects(blobs.putPieces(other, piecesOf(other, pieces(70))), {
      code: "request_invalid",
      message: /than the 70 that came/,
    });
    assert.equal(await blobs.get(other), null);
    await blobs.putPieces(other, piecesOf(other, pieces()));
    assert.deepEqual(await blobs.get(other), bytes);
  }
  assert.deepEqual((await readdir(join(scratch, "folder/set1/sent"))).length, 1, "no draft is left");
  assert.deepEqual(
    (await readdir(tmpdir())).filter((name) => name.startsWith("alidade-blob-")),
    [],
  );
});

test("all but one of a rollout's blobs are removed, in a bucket as in a folder", async (t) => {
  if (!(await need(t, "s3"))) return;
  await using server = await startS3(join(scratch, "others"));
  for (const word of [join(scratch, "others-folder"), `s3://${server.bucket}/c`]) {
    const blobs = openOwnBlobs(word, server.env);
    const all = [];
    // One after the other: a later attempt removes what an earlier one is still writing.
    for (const attempt of [1, 2, 11]) all.push(await putPacked(blobs, `set1/roll1/${attempt}`, { attempt }));
    const other = await putPacked(blobs, "set1/roll11/1", { attempt: 1 });
    if (!word.startsWith("s3:")) await writeFile(join(word, "set1/roll1/11-half.json.zst.7.7.new"), "half");
    const [kept] = all;
    for (const _ of ["once", "again"]) await blobs.removeBelow("set1/roll1", kept?.key);
    const there = await Promise.all([...all, other].map(async ({ key }) => (await blobs.get(key)) !== null));
    assert.deepEqual(there, [true, false, false, true], word);
    if (!word.startsWith("s3:")) assert.equal((await readdir(join(word, "set1/roll1"))).length, 1);
    await blobs.removeBelow("set1/none", "set1/none/1-a.json.zst");
  }
});

test("what is wrong with bucket, key or server is one sentence, and nothing is taken for stored", async (t) => {
  if (!(await need(t, "s3"))) return;
  await using server = await startS3(join(scratch, "wrong"));
  const put = (url: string, env: Record<string, string>) => openBlobs(url, env).put("set1/a.json.zst", Buffer.from("a"));
  const place = `s3://${server.bucket}`;
  await assert.rejects(put("s3://no-such-bucket", server.env), { code: "store_error", message: /NoSuchBucket/ });
  await assert.rejects(openBlobs("s3://no-such-bucket", server.env).get("ledger.id"), { code: "store_error", message: /NoSuchBucket/ });
  await assert.rejects(put(place, { ...server.env, AWS_ACCESS_KEY_ID: "other" }), { code: "store_error", message: /InvalidAccessKeyId/ });
});

test("an address that is none, and a variable that is missing, are refused before anything is asked", () => {
  const refused = (url: string, env: Record<string, string>) => {
    try {
      openBlobs(url, env);
    } catch (error) {
      return (error as Error).message;
    }
    return "taken";
  };
  assert.match(refused("s3://bucket/a/../b", keys), /is no s3:\/\/bucket\/prefix/);
  assert.match(refused("s3://", keys), /is no s3:\/\/bucket\/prefix/);
  assert.match(refused("s3://bucket", { AWS_ACCESS_KEY_ID: "x" }), /needs AWS_SECRET_ACCESS_KEY, which is not set/);
  assert.match(refused("s3://bucket", { ...keys, AWS_ENDPOINT_URL_S3: "localhost:9000" }), /AWS_ENDPOINT_URL_S3 is localhost:9000/);
  assert.match(refused("gs://bucket", keys), /gs:\/\/bucket: give a folder .* s3:\/\/bucket\/prefix/);
  assert.equal(refused("s3://bucket/prefix", keys), "taken");
});

const someKeys = Array.from({ length: 60 }, (_, at) => `set1/roll1/logs/1-${at + 1}.json.zst`);

/** Makes a bucket that lists `someKeys` until all are removed, and passes each removal to `onRemoval`. */
async function bucketOf(t: TestContext, onRemoval: (answer: () => void) => void) {
  let left = someKeys.length;
  const server = createServer(({ method }, response) => {
    if (method === "GET") {
      const keys = left === 0 ? [] : someKeys;
      return response.end(keys.map((key) => `<Key>${key}</Key>`).join(""));
    }
    onRemoval(() => {
      left -= 1;
      response.writeHead(204).end();
    });
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  t.after(() => server.closeAllConnections());
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  return openOwnBlobs("s3://bucket", { ...keys, AWS_ENDPOINT_URL_S3: `http://127.0.0.1:${port}` });
}

test("keys are removed twenty at once", { timeout: 60_000 }, async (t) => {
  const waiting: (() => void)[] = [];
  let most = 0;
  const blobs = await bucketOf(t, (answer) => {
    most = Math.max(most, waiting.push(answer));
    if (waiting.length === 20) for (const one of waiting.splice(0)) one();
  });
  await blobs.removeLogs("set1/roll1", 1);
  assert.equal(most, 20);
});

test("a removal ends with its signal, even if the server does not answer", { timeout: 60_000 }, async (t) => {
  const stop = new AbortController();
  let asked = 0;
  const blobs = await bucketOf(t, () => {
    asked += 1;
    if (asked === 20) stop.abort(new Error("the node is stopped"));
  });
  await assert.rejects(blobs.removeLogs("set1/roll1", 1, stop.signal), /the node is stopped/);
  assert.equal(asked, 20, "none is asked for after that");
});

test("if a bucket answers 403, the error names the rights that the key needs", async (t) => {
  const server = createServer((_, response) => {
    response.writeHead(403).end("<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>");
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  const blobs = openBlobs("s3://bucket", { ...keys, AWS_ENDPOINT_URL_S3: `http://127.0.0.1:${port}` });
  await assert.rejects(blobs.get("ledger.id"), {
    code: "store_error",
    message: /HTTP 403 AccessDenied Access Denied\. The key needs s3:GetObject, .* and s3:ListBucket on the bucket/,
  });
});
