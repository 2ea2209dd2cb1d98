import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { Readable } from "node:stream";
import { test } from "node:test";
import { keepLayer, type LayerEntry, temporaryLayers } from "../../files/layer.ts";

test("a link whose target is not UTF-8 is refused: it would lead elsewhere when it is put back", async () => {
  await using kept = await temporaryLayers();
  const link: LayerEntry = {
    path: "/work/link",
    type: "link",
    kind: "added",
    mode: 0o777,
    owner: null,
    mtime: new Date(0),
    size: 0,
    target: Buffer.from([0x61, 0xff]).toString("utf8"),
    content: null,
  };
  await assert.rejects(keepLayer(Readable.from([link]), kept.folder), {
    code: "output_unreadable",
    message: "The target of the link /work/link is not UTF-8.",
  });
  assert.deepEqual(await readdir(kept.folder), []);
});
