import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { SessionOptions } from "../../base/schema/session-spec.ts";
import { configReadme, path } from "./config-readme.ts";

test("docs/configuration.md says what the schema of the configuration says", async () => {
  assert.equal(await readFile(path, "utf8"), configReadme(), "run: node test/contracts/config-readme.ts");
});

test("every option of a session says what it means", () => {
  for (const [key, field] of Object.entries(SessionOptions.shape)) assert.ok((field.description ?? "").length > 20, key);
});
