import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Task } from "../../schema/task.ts";
import { loadTasks, taskFormats } from "../../tasks/index.ts";

const demo = "examples/demo/tasks";
const examples: Record<string, string> = {
  native: demo,
  "swe-row": "examples/tasks/swe-npm.jsonl",
};

for (const format of taskFormats) {
  test(`${format.name}: claims its own example, and no other format does`, async () => {
    const path = examples[format.name];
    assert.ok(path, "give the new format an example here");
    for (const other of taskFormats) assert.equal(await other.matches(path), other === format, other.name);
  });

  test(`${format.name}: claims neither a file that is not there nor one of another kind`, async (t) => {
    const folder = await mkdtemp(join(tmpdir(), "alidade-formats-"));
    t.after(() => rm(folder, { recursive: true }));
    await writeFile(join(folder, "notes.md"), "# tasks\n");
    for (const path of [join(folder, "missing.jsonl"), join(folder, "notes.md"), folder]) assert.equal(await format.matches(path), false);
  });
}

test("what a loader gives is a task by the schema, with no host path that is not absolute", async () => {
  for (const task of await loadTasks(demo)) {
    Task.parse(task);
    for (const path of [task.environment.files, ...Object.values(task.environment.mounts)]) assert.ok(path?.startsWith("/"));
  }
});
