/** The pixels that trainers get of a picture are those that the engine saw, whatever the kind of picture. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";
import { need } from "../../needs.ts";
import { consumerScripts, consumersPlace } from "./place.ts";

const scratch = scratchFolder("consumer-pixels");

test("pictures are turned as EXIF says and stand on white, as vLLM reads them", { timeout: 120_000 }, async (t) => {
  if (!(await need(t, "consumers"))) return;
  const media = join(scratch, "media");
  await mkdir(media, { recursive: true });
  const python = join(consumersPlace(), "venv/bin/python");
  const { stdout } = await promisify(execFile)(python, [join(consumerScripts, "pixels.py"), media], {
    env: { ...process.env, PYTHONDONTWRITEBYTECODE: "1" },
    signal: t.signal,
  });
  assert.deepEqual(JSON.parse(stdout), {});
});
