/** Checks which bytes travel beside the rows of a line of results. */
import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { test } from "node:test";
import { picturesNamedIn } from "../../../service/blobs/index.ts";

test("only the bytes that rows name go beside them: a picture by its field or its file, and no experts of a format without them", () => {
  const [picture, shown, experts] = ["a", "b", "c"].map((text) => ({ sha256: hash("sha256", text), base64: btoa(text) }));
  assert.ok(picture && shown && experts);
  const rows = [
    JSON.stringify({ token_ids: [1, 2], media: [{ sha256: picture.sha256, start: 0, length: 1 }] }),
    JSON.stringify({ messages: [{ url: `media/${shown.sha256}.png` }], text: `${experts.sha256}0` }),
  ];
  assert.deepEqual(picturesNamedIn(rows, [picture, shown, experts]), [picture, shown]);
  const routed = JSON.stringify({ routing: [{ sha256: experts.sha256, start: 0, length: 1 }] });
  assert.deepEqual(picturesNamedIn([routed], [picture, shown, experts]), [experts]);
  assert.deepEqual(picturesNamedIn([], [picture]), []);
});
