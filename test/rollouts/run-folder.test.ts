import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { RunFolder } from "../../rollouts/records/run-folder.ts";

test("a work that a killed process was writing is gone when the run is opened again, and whole ones stay", async (t) => {
  const path = await mkdtemp(join(tmpdir(), "alidade-run-folder-"));
  t.after(() => rm(path, { recursive: true }));
  await mkdir(join(path, "blobs", ".draft-Ab12cd"), { recursive: true });
  await writeFile(join(path, "blobs", ".draft-Ab12cd", "layer"), "half");
  await writeFile(join(path, "blobs", "0.tar.gz"), "whole");
  await using folder = await RunFolder.open(path);
  assert.deepEqual(await readdir(folder.blobs), ["0.tar.gz"]);
});
