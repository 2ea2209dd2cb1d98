import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { scratchFolder } from "./fakes/machine/scratch-folder.ts";
import type { FileCounts } from "./green.ts";
import { notePassed, passedBefore, sayPassed } from "./passed.ts";

const scratch = scratchFolder("passed");
const whole: FileCounts = { passed: 2, failed: 0, skipped: 0 };
const [pure, docker, partly, broken] = ["pure.test.ts", "docker.test.ts", "partly.test.ts", "broken.test.ts"];
const files = [pure, docker, partly, broken];
const results = new Map([
  [pure, whole],
  [docker, whole],
  [partly, { ...whole, skipped: 1 }],
  [broken, { ...whole, failed: 1 }],
]);

test("what passed whole on this content is not run again, what was left out, failed or may see a container engine is", (t) => {
  const before = process.env.ALIDADE_TEST_PASSED;
  t.after(() => {
    if (before === undefined) delete process.env.ALIDADE_TEST_PASSED;
    else process.env.ALIDADE_TEST_PASSED = before;
  });
  const root = join(scratch, "repository");
  mkdirSync(root);
  execFileSync("git", ["init", "-q"], { cwd: root });
  for (const file of files) writeFileSync(join(root, file), `// ${file === docker ? 'need(t, "docker")' : file}`);
  execFileSync("git", ["add", "."], { cwd: root });

  delete process.env.ALIDADE_TEST_PASSED;
  notePassed(results, root);
  assert.deepEqual(passedBefore(files, root), [], "nothing asks for it");
  process.env.ALIDADE_TEST_PASSED = join(scratch, "passed.json");
  assert.deepEqual(passedBefore(files, root), [], "nothing is noted");
  notePassed(results, root);
  assert.deepEqual(passedBefore(files, root), [pure]);
  assert.match(sayPassed([pure]), /^Not run again: 1 file /);

  notePassed(new Map([[broken, whole]]), root);
  writeFileSync(join(root, "built"), "");
  assert.deepEqual(passedBefore(files, root), [pure], "a later run keeps what the first one noted, and what is built counts for nothing");
  writeFileSync(join(root, docker), "edited");
  assert.deepEqual(passedBefore(files, root), []);
});
