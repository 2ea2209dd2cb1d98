/** The page of routes is what the listeners serve. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { httpPage, path } from "./http-page.ts";

test("docs/http.md says what the routes declare", async () => {
  assert.equal(await readFile(path, "utf8"), httpPage(), "run: node test/contracts/http-page.ts");
});
