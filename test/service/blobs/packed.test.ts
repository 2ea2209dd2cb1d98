import assert from "node:assert/strict";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { FolderBlobs, getPacked, putPacked } from "../../../service/blobs/index.ts";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";

const scratch = scratchFolder("blobs");

test("a record comes back as it was put, and its folder holds whole files only", async () => {
  const blobs = new FolderBlobs(join(scratch, "whole"));
  const record = { ids: [1, 2, 3], text: "ü" };
  const at = await putPacked(blobs, "set1/roll1/1", record);
  assert.deepEqual(await putPacked(blobs, "set1/roll1/1", record), at);
  assert.deepEqual(JSON.parse(await getPacked(blobs, at)), record);
  assert.deepEqual(await readdir(join(scratch, "whole/set1/roll1")), [at.key.split("/").at(-1)]);
});

test("a record that is put many times at once is there whole, and each of them holds", async () => {
  const blobs = new FolderBlobs(join(scratch, "same"));
  const put = () => putPacked(blobs, "set1/roll1/1", { text: "x".repeat(100_000) });
  const [at, ...others] = await Promise.all([put(), put(), put(), put(), put(), put()]);
  for (const other of others) assert.deepEqual(other, at);
  assert.equal(JSON.parse(await getPacked(blobs, at)).text.length, 100_000);
  assert.deepEqual(await readdir(join(scratch, "same/set1/roll1")), [at.key.split("/").at(-1)]);
});

test("what a killed process left of a blob goes with the next attempt's", async () => {
  const folder = join(scratch, "drafts/set1/roll1");
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, "1-0123.json.zst.77.new"), "half");
  const at = await putPacked(new FolderBlobs(join(scratch, "drafts")), "set1/roll1/2", "x");
  assert.deepEqual(await readdir(folder), [at.key.split("/").at(-1)]);
});

test("a damaged blob, a lost one and a key that leads out of the folder are refused", async () => {
  const blobs = new FolderBlobs(join(scratch, "damaged"));
  const at = await putPacked(blobs, "set1/roll1/1", "x");
  await writeFile(join(scratch, "damaged", at.key), "other");
  await assert.rejects(getPacked(blobs, at), { code: "store_error" });
  await assert.rejects(getPacked(blobs, { ...at, key: "set1/none.json.zst" }), { code: "store_error" });
  for (const key of ["../x.json.zst", "/etc/passwd", "a/../../x.json.zst", ""])
    await assert.rejects(blobs.get(key), { code: "internal" }, key);
});
