/** A run whose infrastructure fails: what it broke is done again, by the next attempt or by the process that goes on with the run. */
import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { AlidadeError } from "../../base/errors.ts";
import { readTrajectories } from "../../rollouts/index.ts";
import { pickBackend } from "../../sandboxes/registry.ts";
import type { SandboxBackend } from "../../sandboxes/sandbox.ts";
import { runner } from "../fakes/rollouts/small-run.ts";
import { writeTask } from "../fakes/rollouts/small-task.ts";

/** Its second sandbox is the work's grading, its third the one of the task's own files. */
const graders = [2, 3];

test("a grading that the infrastructure broke is followed by another attempt, at once or when the run is taken up again", async (t) => {
  const place = await mkdtemp(join(tmpdir(), "alidade-run-tasks-"));
  t.after(() => rm(place, { recursive: true }));
  await writeTask(place, "small");
  for (const retries of [1, 0]) {
    const run = await runner(t, place, { path: join(place, `run${retries}`), retries });
    const first = await run(await failingAt(graders, t.signal));
    assert.deepEqual(
      first.map(({ attempt, verdict }) => [attempt, verdict?.status, verdict?.reward]),
      retries === 1 ? [[2, "graded", 1]] : [[1, "infra_error", null]],
    );
    const last = await run(await failingAt([], t.signal));
    assert.deepEqual([last.at(-1)?.attempt, last.at(-1)?.verdict?.reward], [2, 1]);
  }
});

test("a run that is stopped while it grades is not done with that rollout", async (t) => {
  const place = await mkdtemp(join(tmpdir(), "alidade-run-tasks-"));
  t.after(() => rm(place, { recursive: true }));
  await writeTask(place, "small");
  const run = await runner(t, place, { path: join(place, "run"), retries: 0 });
  const stop = new AbortController();
  const backend = await failingAt(graders, t.signal, () => stop.abort(new AlidadeError("cancelled", "Ctrl-C")));
  const first = await run(backend, stop.signal).catch(() => []);
  assert.notEqual(first.at(-1)?.verdict?.reward, 1);
  const last = await run(await failingAt([], t.signal));
  assert.deepEqual([last.at(-1)?.attempt, last.at(-1)?.verdict?.reward], [2, 1]);
});

test("a process that is killed while it takes out orphans leaves no trajectory twice", async (t) => {
  const place = await mkdtemp(join(tmpdir(), "alidade-run-tasks-"));
  t.after(() => rm(place, { recursive: true }));
  await writeTask(place, "small");
  const path = join(place, "run");
  const run = await runner(t, place, { path, retries: 0 });
  await run(await failingAt([], t.signal));
  const file = join(path, "trajectories.jsonl");
  const kept = await readFile(file, "utf8");
  const orphan = JSON.stringify({ ...JSON.parse(kept), attempt: 9 });
  await writeFile(file, `${kept}${orphan}\n`);
  await writeFile(`${file}.new`, kept);
  await run(await failingAt([], t.signal));
  assert.deepEqual(
    (await readTrajectories(path)).map(({ attempt }) => attempt),
    [1],
  );
});

/** The process sandbox, which cannot make those of these numbers. */
async function failingAt(numbers: number[], signal: AbortSignal, before: () => void = () => undefined): Promise<SandboxBackend> {
  const { backend } = await pickBackend("process", signal);
  let made = 0;
  return {
    ...backend,
    create(spec, signal) {
      if (!numbers.includes(++made)) return backend.create(spec, signal);
      before();
      throw new AlidadeError("sandbox_unavailable", "the daemon was restarted");
    },
  };
}
