import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { test } from "node:test";
import { createGunzip, gzipSync } from "node:zlib";
import { packTar, type TarEntry } from "../../../base/files/pack-tar.ts";
import { readTar } from "../../../base/files/read-tar.ts";

const content = Buffer.alloc(200_000, "x");
const file = { type: "file", mode: 0o644, owner: { uid: 0, gid: 0 }, mtime: new Date(0), size: content.length, content } as const;
const entries: TarEntry[] = ["a", "b", "c"].map((name) => ({ ...file, name }));
const tarball = () => buffer(Readable.from(packTar(entries)));

async function readNames(source: Readable): Promise<string[]> {
  const names: string[] = [];
  for await (const { header } of readTar(source)) names.push(header.name);
  return names;
}

test("contents that are not read are passed over", async () => {
  assert.deepEqual(await readNames(Readable.from([await tarball()])), ["a", "b", "c"]);
});

test("a tarball that is torn, damaged or no tarball is thrown to its reader", async () => {
  const whole = await tarball();
  await assert.rejects(readNames(Readable.from([whole.subarray(0, 300_000)])), /end of data/i);
  await assert.rejects(readNames(Readable.from([Buffer.alloc(1024, "no tarball ")])), /tar header/i);
  const packed = gzipSync(whole);
  const torn = () => readTar(Readable.from([packed.subarray(0, packed.length / 2)]), createGunzip());
  await assert.rejects(Array.fromAsync(torn()), /unexpected end of file/);
});

test("a source that fails is thrown to the reader, also in the middle of a content", async () => {
  const whole = await tarball();
  async function* failing(): AsyncGenerator<Buffer> {
    yield whole.subarray(0, 100_000);
    throw new Error("the engine is gone");
  }
  await assert.rejects(readNames(Readable.from(failing())), /the engine is gone/);
  await assert.rejects(async () => {
    for await (const { content } of readTar(Readable.from(failing()))) await buffer(content);
  }, /the engine is gone/);
});

test("a reader that leaves early, or fails, ends the source", async () => {
  for (const leave of [() => undefined, () => assert.fail("the reader failed")]) {
    const source = Readable.from(packTar(entries));
    const reading = (async () => {
      for await (const _ of readTar(source)) return leave();
    })();
    await reading.catch(() => undefined);
    assert.equal(source.destroyed, true);
  }
});
