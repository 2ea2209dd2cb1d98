/** What holds for every task format: `alidade plugin check` and the contract tests run it. */
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { isAbsolute, join } from "node:path";
import type { ContractCheck } from "../base/host/plug-ins.ts";
import { temporary } from "../base/host/temporary-folder.ts";
import { Task } from "../base/schema/task.ts";
import type { Grader } from "../graders/index.ts";
import type { TaskFormat } from "./task-format.ts";

/** `path`: tasks in this form; null: there are none at hand, and what needs them is left out. */
export type TaskFormatContext = { path: string | null; graders?: readonly Grader[] };

export const taskFormatContract: readonly ContractCheck<TaskFormat, TaskFormatContext>[] = [
  {
    says: "it claims neither a file that is not there nor one of another kind",
    async check(format) {
      const folder = await mkdtemp(join(tmpdir(), temporary.package));
      try {
        await writeFile(join(folder, "notes.md"), "# tasks\n");
        for (const path of [join(folder, "missing"), join(folder, "notes.md"), folder])
          assert.equal(await format.matches(path), false, path);
      } finally {
        await rm(folder, { recursive: true });
      }
    },
  },
  {
    says: "it claims its own, and loads tasks by the schema, with no host path that is not absolute",
    async check(format, { path, graders }) {
      if (path === null) return;
      assert.equal(await format.matches(path), true, path);
      const tasks = await format.load(path, graders ? { graders } : {});
      assert.ok(tasks.length > 0, `${path} holds no task`);
      for (const task of tasks) {
        const { environment } = Task.parse(task);
        for (const host of [environment.files ?? "/", ...Object.values(environment.mounts)]) assert.ok(isAbsolute(host), host);
      }
    },
  },
  {
    says: "it loads one task by its id, and none of a name that there is not",
    async check(format, { path, graders }) {
      if (path === null) return;
      const options = graders ? { graders } : {};
      const [first] = await format.load(path, options);
      const ids = async (id: string): Promise<string[]> =>
        (await format.load(path, { ...options, only: new Set([id]) })).map(({ task_id }) => task_id);
      assert.deepEqual([await ids(first?.task_id ?? ""), await ids("there-is-no-such-task")], [[first?.task_id], []]);
    },
  },
];
