import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { loadOptional } from "../../../base/host/optional-package.ts";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";

test("an optional package is the user's own, and one that is missing or broken is named", async () => {
  const from = scratchFolder("optional");
  for (const [name, text] of [
    ["wanted", "exports.word = 'own';"],
    ["broken", "throw new Error('no such year');"],
  ] as const) {
    await mkdir(join(from, "node_modules", name), { recursive: true });
    await writeFile(join(from, "node_modules", name, "index.js"), text);
  }
  const options = { missing: "install it by npm", param: "otel", from };
  assert.equal((await loadOptional("wanted", options)).word, "own");
  await assert.rejects(loadOptional("absent", options), { code: "config_invalid", param: "otel", message: "install it by npm" });
  await assert.rejects(loadOptional("broken", options), { message: "the package broken does not load: no such year" });
});
