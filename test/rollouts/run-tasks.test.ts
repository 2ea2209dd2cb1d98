/** A run whose infrastructure fails: what it broke is done again, by the next attempt or by whoever goes on with the run. */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { engines } from "../../engines/index.ts";
import { AlidadeError } from "../../errors.ts";
import { commandHarness } from "../../harnesses/command.ts";
import { HarnessProxy } from "../../proxy/index.ts";
import { RunFolder, runTasks } from "../../rollouts/index.ts";
import { pickBackend } from "../../sandboxes/index.ts";
import type { SandboxBackend } from "../../sandboxes/sandbox.ts";
import { DiskStore } from "../../store/index.ts";
import { loadTasks } from "../../tasks/index.ts";
import { ScriptedEngine } from "../fakes/scripted-engine.ts";
import { chatHarness, solve, writeTask } from "../fakes/small-task.ts";

/** Its second sandbox is the grader's. */
const graders = 2;

test("a grading that the infrastructure broke is followed by another attempt, at once or when the run is taken up again", async (t) => {
  const place = await mkdtemp(join(tmpdir(), "alidade-run-tasks-"));
  t.after(() => rm(place, { recursive: true }));
  await writeTask(place, "small");
  for (const retries of [1, 0]) {
    const run = await runner(t, place, join(place, `run${retries}`), retries);
    const first = await run(await failingAt(graders, t.signal));
    assert.deepEqual(
      first.map(({ attempt, verdict }) => [attempt, verdict?.status, verdict?.reward]),
      retries === 1 ? [[2, "graded", 1]] : [[1, "infra_error", null]],
    );
    const last = await run(await failingAt(0, t.signal));
    assert.deepEqual([last.at(-1)?.attempt, last.at(-1)?.verdict?.reward], [2, 1]);
  }
});

test("a run that is stopped while it grades is not done with that rollout", async (t) => {
  const place = await mkdtemp(join(tmpdir(), "alidade-run-tasks-"));
  t.after(() => rm(place, { recursive: true }));
  await writeTask(place, "small");
  const run = await runner(t, place, join(place, "run"), 0);
  const stop = new AbortController();
  const backend = await failingAt(graders, t.signal, () => stop.abort(new AlidadeError("cancelled", "Ctrl-C")));
  const first = await run(backend, stop.signal).catch(() => []);
  assert.notEqual(first.at(-1)?.verdict?.reward, 1);
  const last = await run(await failingAt(0, t.signal));
  assert.deepEqual([last.at(-1)?.attempt, last.at(-1)?.verdict?.reward], [2, 1]);
});

/** The process sandbox, which cannot make the `number`-th one. */
async function failingAt(number: number, signal: AbortSignal, before: () => void = () => undefined): Promise<SandboxBackend> {
  const { backend } = await pickBackend("process", signal);
  let made = 0;
  return {
    ...backend,
    create(spec, signal) {
      if (++made !== number) return backend.create(spec, signal);
      before();
      throw new AlidadeError("sandbox_unavailable", "the daemon was restarted");
    },
  };
}

/** Runs what is not done in the folder. */
async function runner(t: TestContext, place: string, path: string, retries: number) {
  const engine = await ScriptedEngine.start(solve);
  t.after(() => engine[Symbol.asyncDispose]());
  const tasks = await loadTasks(join(place, "small"));
  return async (backend: SandboxBackend, signal = t.signal) => {
    await using folder = await RunFolder.open(path);
    const vllm = engines.find(({ name }) => name === "vllm")?.create({ baseUrl: engine.url, apiKey: null });
    assert.ok(vllm);
    await using proxy = await HarnessProxy.start({ engine: vllm, store: new DiskStore(RunFolder.sessions(path)), version: "test" });
    try {
      return await runTasks(
        {
          run_id: "r",
          tasks,
          samples: 1,
          harness: commandHarness({ argv: ["node", chatHarness, "{instruction}"], env: {} }),
          backend,
          proxy,
          folder,
          purpose: "train",
          budgets: {},
          samplingOf: () => ({}),
          concurrency: { init: 1, run: 1, post: 1 },
          retries,
          onProgress: () => undefined,
        },
        signal,
      );
    } finally {
      await vllm.close();
    }
  };
}
