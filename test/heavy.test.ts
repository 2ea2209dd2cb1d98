import assert from "node:assert/strict";
import { globSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { heavy, heavyOf, sayHeavy } from "./heavy.ts";

const files = globSync("test/**/*.test.ts", { cwd: join(import.meta.dirname, "..") }).sort();

test("a plain run leaves the heavy files out and says how to add them; CI, a wish and a filter run them", () => {
  const left = heavyOf(files, [], {});
  assert.ok(left.includes("test/e2e/siblings.test.ts") && left.length < files.length / 10, left.join(" "));
  assert.deepEqual(heavyOf(files, ["!interop"], {}), left, "a filter that leaves out asks for nothing");
  assert.deepEqual(heavyOf(left, ["siblings"], {}), []);
  for (const name of ["ALIDADE_TEST_HEAVY", "ALIDADE_TEST_ALL"]) assert.deepEqual(heavyOf(files, [], { [name]: "1" }), []);
  assert.match(sayHeavy(left), /^Left out: \d+ heavy test files .*To add: ALIDADE_TEST_HEAVY=1 npm test$/);
});

test("each heavy file is there", () => {
  for (const glob of heavy)
    assert.notDeepEqual(
      heavyOf(files, [], {}).filter((file) => globSync(glob).includes(file)),
      [],
      glob,
    );
});
