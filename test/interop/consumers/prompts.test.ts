/** The trainers' own data set code on the prompts that `alidade tasks export` writes. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { loadTasks } from "../../../tasks/load-tasks.ts";
import { promptFormats } from "../../../tasks/prompts/prompt-formats.ts";
import { factsOf } from "../../../tasks/prompts/prompt-row.ts";
import { taskSetOf } from "../../../tasks/sets/task-set.ts";
import { need } from "../../needs.ts";
import { consumerScripts, consumersPlace } from "./place.ts";

test("every trainer's data set reads each task, its prompt, its id and its source", { timeout: 900_000 }, async (t) => {
  if (!(await need(t, "consumers"))) return;
  const folder = await mkdtemp(join(tmpdir(), "alidade-prompts-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const set = await taskSetOf("examples/demo/tasks", await loadTasks("examples/demo/tasks"));
  for (const { name, row } of promptFormats) {
    const lines = set.tasks.map((one, index) => JSON.stringify(row(factsOf(set, one), one.task.instruction, index)));
    await writeFile(join(folder, `${name}.jsonl`), `${lines.join("\n")}\n`);
  }
  const python = join(consumersPlace(), "venv/bin/python");
  const { stdout } = await promisify(execFile)(python, ["-W", "ignore", join(consumerScripts, "prompts.py"), folder], {
    env: { ...process.env, OMP_NUM_THREADS: "1", PYTHONDONTWRITEBYTECODE: "1", HF_HOME: folder },
    signal: t.signal,
  });
  const read = Object.assign(
    {},
    ...stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as object),
  ) as Record<string, unknown>;
  const [first] = set.tasks;
  const { task_id, data_source } = factsOf(set, first as NonNullable<typeof first>);
  const expected = [set.tasks.length, [{ role: "user", content: first?.task.instruction }], task_id, data_source];
  assert.deepEqual(read, Object.fromEntries(promptFormats.map(({ name }) => [name, expected])));
});
