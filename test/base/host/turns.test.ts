/** Works that hold up the event loop let it go on in between. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Turns } from "../../../base/host/turns.ts";

test("a timer that is due runs between works, however many follow each other", async () => {
  const turns = new Turns();
  let isRun = false;
  setTimeout(() => {
    isRun = true;
  }, 0);
  for (let works = 0; works < 1_000 && !isRun; works++) {
    await turns.take();
    const began = performance.now();
    while (performance.now() - began < 1);
  }
  assert.ok(isRun);
});
