import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { exportersReadme, path } from "./exporters-readme.ts";

test("exporters/README.md says what the exporters declare", async () => {
  assert.equal(await readFile(path, "utf8"), exportersReadme(), "run: node test/contracts/exporters-readme.ts");
});
