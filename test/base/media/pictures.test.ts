import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { mkdtemp, readdir, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import { MediaFolder } from "../../../base/media/media-folder.ts";
import { readPicture } from "../../../base/media/read-picture.ts";
import { toLinkedPicture, toStoredPicture } from "../../../base/media/stored-picture.ts";
import { pngOf, pngUrl } from "../../fakes/records/png.ts";

const hex = (...pieces: string[]): Buffer => Buffer.from(pieces.join(""), "hex");

test("kind and size of a picture are read from its first bytes", () => {
  const jpeg = hex("ffd8", "ffe0", "0006", "00000000", "ff", "ffc2", "000b", "08", "0190", "0280", "03000000");
  const gif = Buffer.concat([Buffer.from("GIF89a"), hex("8002", "9001", "00")]);
  const webp = (kind: string, rest: string) =>
    Buffer.concat([Buffer.from("RIFF"), hex("00000000"), Buffer.from(`WEBP${kind}`), hex("00000000", rest), Buffer.alloc(16)]);
  const facts = { width: 640, height: 400 };
  assert.deepEqual(readPicture(pngOf(640, 400)), { kind: "image/png", ...facts });
  assert.deepEqual(readPicture(jpeg), { kind: "image/jpeg", ...facts });
  assert.deepEqual(readPicture(gif), { kind: "image/gif", ...facts });
  assert.deepEqual(readPicture(webp("VP8X", "00000000" + "7f0200" + "8f0100")), { kind: "image/webp", ...facts });
  assert.deepEqual(readPicture(webp("VP8 ", "000000" + "9d012a" + "8002" + "9001")), { kind: "image/webp", ...facts });
  assert.deepEqual(readPicture(webp("VP8L", "2f" + "7fc26300")), { kind: "image/webp", ...facts });
});

test("bytes of any kind are read without an error, and only pictures are pictures", () => {
  for (const bytes of [
    Buffer.from("<svg onload='alert(1)'/>"),
    pngOf(0, 4),
    hex("ffd8ffe00000"),
    hex("ffd8", "ffe0", "ffff"),
    Buffer.alloc(0),
  ])
    assert.equal(readPicture(bytes), null);
  const heads = fc.constantFrom("", "ffd8ff", "89504e470d0a1a0a", "474946383961", "52494646");
  fc.assert(
    fc.property(heads, fc.uint8Array({ maxLength: 200 }), (head, rest) => {
      const facts = readPicture(Buffer.concat([hex(head), rest]));
      assert.ok(facts === null || (facts.width > 0 && facts.height > 0));
    }),
  );
});

test("a stored picture comes back as the URL that was sent, and what would not stays one", () => {
  const url = pngUrl(3, 2);
  const stored = toStoredPicture({ type: "image", url, detail: "high" }) ?? assert.fail("it is a picture");
  assert.equal(stored.part.sha256, hash("sha256", pngOf(3, 2)));
  assert.deepEqual(toLinkedPicture(stored.part, stored.bytes), { type: "image", url, detail: "high" });
  const svg = Buffer.from("<svg xmlns='http://www.w3.org/2000/svg'/>").toString("base64");
  for (const other of [
    `${url}\n`,
    url.replace("image/png", "image/png;a=b"),
    `data:image/svg+xml;base64,${svg}`,
    `data:image/png;base64,${svg}`,
    "https://example.com/a.png",
    `data:text/html;base64,${url.split(",")[1]}`,
  ])
    assert.equal(toStoredPicture({ type: "image", url: other }), null, other.slice(0, 40));
});

test("a picture lies under its hash once, and a damaged one or a name that is no hash is refused", async () => {
  const media = new MediaFolder(join(await mkdtemp(join(tmpdir(), "alidade-media-")), "media"));
  const bytes = pngOf(3, 2);
  const name = hash("sha256", bytes);
  media.keep(name, bytes);
  new MediaFolder(media.folder).keep(name, bytes);
  assert.deepEqual(await readdir(media.folder), [name]);
  assert.deepEqual(media.read(name), bytes);
  for (const damaged of ["half", Buffer.alloc(bytes.length)]) {
    await writeFile(join(media.folder, name), damaged);
    assert.throws(() => media.read(name), { code: "store_error" });
    // A torn or empty file of a machine that went down is written anew.
    new MediaFolder(media.folder).keep(name, bytes);
    assert.deepEqual(media.read(name), bytes);
  }
  // Other bytes under its name spoil none that are right.
  new MediaFolder(media.folder).keep(name, Buffer.alloc(bytes.length));
  assert.deepEqual(media.read(name), bytes);
  assert.throws(() => media.read("../../../etc/passwd"), { code: "not_found" });
  assert.throws(() => media.read("a".repeat(64)), { code: "not_found" });
});
