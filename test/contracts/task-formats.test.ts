import assert from "node:assert/strict";
import { test } from "node:test";
import { taskFormats } from "../../tasks/registry.ts";

const examples: Record<string, string> = {
  native: "examples/demo/tasks",
  harbor: "examples/harbor",
  "terminal-bench": "examples/terminal-bench",
  questions: "examples/questions/two-forms.jsonl",
  "tool-set": "examples/tool-sets/retail.set.yaml",
  "swe-row": "examples/tasks/swe-npm.jsonl",
};

for (const format of taskFormats) {
  test(`${format.name}: claims its own example, and no other format does`, async () => {
    const path = examples[format.name];
    assert.ok(path, "give the new format an example here");
    for (const other of taskFormats) assert.equal(await other.matches(path), other === format, other.name);
  });
}
