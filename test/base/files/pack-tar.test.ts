import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { test } from "node:test";
import { promisify } from "node:util";
import fc from "fast-check";
import { packTar, type TarEntry } from "../../../base/files/pack-tar.ts";
import { readTar } from "../../../base/files/read-tar.ts";

const owner = { uid: 1000, gid: 1000 };
const plain = { mode: 0o640, owner, mtime: new Date(1_700_000_000_000) };

/** Names of all lengths around the fields of a header, of ASCII and of other characters. */
const part = fc.string({ unit: fc.constantFrom("a", "b", "-", " ", "'", "\n", "é", "語", "😀"), minLength: 1, maxLength: 120 });
const path = fc.array(part, { minLength: 1, maxLength: 5 }).map((parts) => parts.join("/"));
const number = fc.oneof(fc.nat(0o7777777), fc.nat({ max: 2 ** 32 - 1 }));
const entry = fc.oneof(
  fc.record({
    type: fc.constant("file" as const),
    name: path,
    content: fc.uint8Array({ maxLength: 2_000 }).map((bytes) => Buffer.from(bytes)),
  }),
  fc.record({ type: fc.constant("directory" as const), name: path.map((name) => `${name}/`) }),
  fc.record({ type: fc.constantFrom("symlink" as const, "link" as const), name: path, linkname: path }),
);
const header = fc.record({
  mode: fc.nat(0o7777),
  owner: fc.record({ uid: number, gid: number }, { noNullPrototype: true }),
  mtime: fc.nat({ max: 2 ** 31 - 1 }).map((seconds) => new Date(seconds * 1000)),
});

function withSize(entry: TarEntry): TarEntry {
  return Buffer.isBuffer(entry.content) ? { ...entry, size: entry.content.length } : entry;
}

async function readAll(tarball: AsyncIterable<Buffer>): Promise<TarEntry[]> {
  const found: TarEntry[] = [];
  for await (const { header, content } of readTar(Readable.from(tarball))) {
    const { name, type, mode = 0, uid = 0, gid = 0, mtime = new Date(0), linkname } = header;
    const bytes = await buffer(content);
    const more = type === "file" ? { content: bytes, size: bytes.length } : linkname ? { linkname } : {};
    found.push({ name, type: type as TarEntry["type"], mode, owner: { uid, gid }, mtime, ...more });
  }
  return found;
}

test("an independent reader finds each entry as it was packed", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(entry, header), { maxLength: 6 }), async (drawn) => {
      const entries = drawn.map(([entry, header]) => withSize({ ...entry, ...header }));
      assert.deepEqual(await readAll(packTar(entries)), entries);
    }),
    { numRuns: 200 },
  );
});

test("a file over 8 GiB keeps its size", async () => {
  const size = 9 * 1024 ** 3;
  const [block = Buffer.alloc(0)] = await packOne({ ...plain, name: "hole", type: "file", size });
  for await (const { header } of readTar(Readable.from([block]))) {
    assert.equal(header.size, size);
    break;
  }
});

/** What comes before the content is asked for. */
async function packOne(entry: TarEntry): Promise<Buffer[]> {
  const content = (async function* () {
    yield Buffer.alloc(64 * 1024);
  })();
  const tarball = packTar([{ ...entry, content }]);
  const { value } = await tarball.next();
  await tarball.return();
  return value ? [value] : [];
}

test("the system's tar unpacks what was packed", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "alidade-pack-"));
  t.after(() => rm(folder, { recursive: true }));
  const long = "語".repeat(60);
  const content = Buffer.from("content\n");
  const file = { ...plain, type: "file" as const, size: content.length, content };
  const tarball = packTar([
    { ...plain, name: "folder/", type: "directory", mode: 0o755 },
    { ...file, name: `folder/${"n".repeat(150)}` },
    { ...file, name: `folder/${long}` },
    { ...plain, name: "link", type: "symlink", linkname: `folder/${long}` },
  ]);
  await writeFile(join(folder, "x.tar"), await buffer(Readable.from(tarball)));
  await promisify(execFile)("tar", ["xf", "x.tar"], { cwd: folder, env: { ...process.env, LC_ALL: "C.UTF-8" } });
  assert.deepEqual((await readdir(join(folder, "folder"))).sort(), ["n".repeat(150), long].sort());
  assert.equal(await readFile(join(folder, "link"), "utf8"), "content\n");
});

test("what fails while an entry is made, or a content of another size, is thrown to the reader, with thousands before it", async () => {
  async function* entries(last: () => AsyncGenerator<TarEntry>): AsyncGenerator<TarEntry> {
    for (let at = 0; at < 20_050; at++) yield { ...plain, name: `${at}`, type: "file", size: 0 };
    yield* last();
  }
  const failing = entries(async function* () {
    yield { ...plain, name: "last", type: "file", size: 0 };
    throw new Error("it failed");
  });
  await assert.rejects(buffer(Readable.from(packTar(failing))), /it failed/);
  for (const length of [0, 3, 5]) {
    const wrong = entries(async function* () {
      yield { ...plain, name: "wrong", type: "file", size: 4, content: Buffer.alloc(length) };
    });
    await assert.rejects(buffer(Readable.from(packTar(wrong))), /the content of wrong is not of the 4 bytes/);
  }
});
