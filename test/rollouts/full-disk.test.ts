/** A rollout that begins while the disk is full: it waits, as those in flight do. */
import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { readRollouts } from "../../rollouts/index.ts";
import { pickBackend } from "../../sandboxes/registry.ts";
import type { SandboxBackend } from "../../sandboxes/sandbox.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";
import { SmallDisk } from "../fakes/machine/small-disk.ts";
import { runner } from "../fakes/rollouts/small-run.ts";
import { writeTask } from "../fakes/rollouts/small-task.ts";
import { need } from "../needs.ts";

const scratch = scratchFolder("rollouts-full-disk");

for (const where of ["the run's folder", "the sandboxes' temporary folder"])
  test(`a rollout that begins while ${where} is full waits for space, and is attempted once`, { timeout: 300_000 }, async (t) => {
    if (!(await need(t, "mount"))) return;
    await using disk = await SmallDisk.mount(4_096);
    const isTemporary = where.startsWith("the sandboxes");
    const place = join(scratch, isTemporary ? "temporary" : "run");
    await writeTask(place, "small");
    const path = join(isTemporary ? place : disk.path, "run");
    await mkdir(path);
    const { backend } = await pickBackend("process", t.signal);
    const inTemporary: SandboxBackend = { ...backend, create: (spec, signal) => below(disk.path, () => backend.create(spec, signal)) };
    let notes = 0;
    const run = await runner(t, place, {
      path,
      retries: 0,
      onNote: (text) => {
        if (!/no space left/.test(text)) return;
        // The second time it has begun once more on a full disk.
        if (++notes === 2) disk.free();
      },
    });
    const filling: SandboxBackend = {
      ...(isTemporary ? inTemporary : backend),
      unavailable: async (signal) => {
        disk.fill();
        return backend.unavailable(signal);
      },
    };
    const records = await run(filling);
    assert.deepEqual(
      records.map(({ attempt, error, verdict }) => [attempt, error, verdict?.reward]),
      [[1, null, 1]],
    );
    assert.ok(notes >= 2);
    assert.equal((await readRollouts(path)).length, 1);
  });

/** Makes something whose temporary folder is another one. */
async function below<T>(folder: string, make: () => Promise<T>): Promise<T> {
  const { TMPDIR } = process.env;
  process.env.TMPDIR = folder;
  try {
    return await make();
  } finally {
    if (TMPDIR === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = TMPDIR;
  }
}
