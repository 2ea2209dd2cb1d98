import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { dialects } from "../../proxy/dialects/registry.ts";
import { readers } from "./dialect-cases.ts";
import { dialectsReadme, path } from "./dialects-readme.ts";

test("proxy/dialects/README.md says what the dialects declare and the suite tests", async () => {
  assert.equal(await readFile(path, "utf8"), dialectsReadme(), "run: node test/contracts/dialects-readme.ts");
});

test("every dialect is read by a client, and says what it cannot say in sentences", () => {
  for (const { name, cannot } of dialects) {
    assert.ok(readers[name], `${name} has no client in dialect-cases.ts`);
    for (const sentence of cannot) assert.match(sentence, /^[A-Z].*\.$/);
  }
});
