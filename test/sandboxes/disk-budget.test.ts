/** Images keep to a budget while a run goes on, and nothing new begins on a disk that is nearly full. */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { runTasks } from "../../rollouts/index.ts";
import { reapMeanwhile } from "../../rollouts/reap-meanwhile.ts";
import { DiskBudget } from "../../sandboxes/disk-budget.ts";
import type { Pruned, PruneOptions, StoredImage } from "../../sandboxes/image-store.ts";
import { localProcess } from "../../sandboxes/process.ts";
import type { ImageStore, SandboxBackend } from "../../sandboxes/sandbox.ts";
import { runner } from "../fakes/rollouts/small-run.ts";
import { writeTask } from "../fakes/rollouts/small-task.ts";

const old: StoredImage = {
  id: "sha256:1",
  names: ["old:1"],
  kind: "pulled",
  bytes: 7e9,
  created: 0,
  last_used: 0,
  runs: [],
  tasks: [],
  in_use: null,
};

function backendWith(prune: (options: PruneOptions) => Promise<Pruned>): SandboxBackend {
  const images: ImageStore = { prepare: async () => [], list: async () => [], prune: (options) => prune(options) };
  return { ...localProcess, images, reap: async () => ({ removed: [], failed: [] }) };
}

test("a run removes images over the budget at its start and meanwhile, and says once that the rest is in use", async () => {
  const asked: PruneOptions[] = [];
  const notes: string[] = [];
  const backend = backendWith(async (options) => {
    asked.push(options);
    if (asked.length === 3) throw new Error("the engine is gone");
    return { removed: asked.length === 1 ? [old] : [], failed: [], bytes_left: 6e9, images_left: 2 };
  });
  const disk = new DiskBudget(backend, { images_gb: 5, keep_free_gb: 1 });
  {
    await using _reaper = reapMeanwhile(
      { backend, disk, onProgress: (event) => void (event.type === "note" && notes.push(event.text)) },
      1,
    );
    while (asked.length < 5) await sleep(1);
  }
  assert.deepEqual(asked[0], { keep: null, budget: 5e9, dry_run: false });
  assert.deepEqual(notes, [
    "removed image old:1 (images took more than disk.images_gb, 5)",
    "images take more than disk.images_gb (5): those that are left are in use, or were not made or pulled by Alidade",
    "images over disk.images_gb could not be removed: the engine is gone",
  ]);
  const without = new DiskBudget(
    backendWith(async () => assert.fail("asked")),
    { images_gb: null, keep_free_gb: 1 },
  );
  assert.deepEqual(await without.trim(AbortSignal.timeout(1_000)), { removed: [], problems: [] });
});

test("a rollout does not begin while less than disk.keep_free_gb is free, and does once there is more", { timeout: 300_000 }, async (t) => {
  const place = await mkdtemp(join(tmpdir(), "alidade-disk-"));
  t.after(() => rm(place, { recursive: true }));
  await writeTask(place, "small");
  let disk_mb = 900;
  let created = 0;
  const notes: string[] = [];
  const backend: SandboxBackend = {
    ...localProcess,
    room: async () => ({ memory_mb: null, disk_mb }),
    create: (spec, signal) => {
      created++;
      return localProcess.create(spec, signal);
    },
  };
  const run = await runner(t, place, {
    path: join(place, "run"),
    retries: 0,
    onNote: (text) => {
      if (!text.includes("keep_free_gb")) return;
      notes.push(text);
      assert.equal(created, 0);
      disk_mb = 1_000;
    },
    does: (setup, batch, signal) =>
      runTasks({ ...setup, disk: new DiskBudget(backend, { images_gb: null, keep_free_gb: 1 }) }, batch, signal),
  });
  const [record] = await run(backend);
  assert.deepEqual([record?.error, record?.verdict?.reward, notes.length], [null, 1, 1]);
  assert.match(
    notes[0] ?? "",
    /^0\.9 GB are free where .* keeps sandboxes, less than disk\.keep_free_gb \(1\): nothing new is begun until space is freed/,
  );
});

test("where the free space is unknown, or none is to be kept, work begins", async () => {
  const signal = AbortSignal.timeout(1_000);
  const room = async () => ({ memory_mb: null, disk_mb: null });
  await new DiskBudget({ ...localProcess, room }, { images_gb: null, keep_free_gb: 1 }).assertFree(signal);
  const full = { ...localProcess, room: async () => ({ memory_mb: 1, disk_mb: 0 }) };
  await new DiskBudget(full, { images_gb: null, keep_free_gb: 0 }).assertFree(signal);
  await assert.rejects(new DiskBudget(full, { images_gb: null, keep_free_gb: 2 }).assertFree(signal), { code: "store_full" });
});
