/**
 * `golden/` is a run folder as an earlier version wrote it, and its rows. Its records of rollouts state no version. If you
 * raise a version, leave these files as they are, and add those of the version that ends beside them.
 */
import assert from "node:assert/strict";
import { cp, readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { recordVersions } from "../../../../base/schema/versions/record-versions.ts";
import { DiskStore, readJsonLines } from "../../../../proxy/store/index.ts";
import { FlatRow, reconstruct, verifyRows } from "../../../../reconstruct/index.ts";
import { readRollouts, readTrajectories } from "../../../../rollouts/index.ts";
import { scratchFolder } from "../../../fakes/machine/scratch-folder.ts";

const golden = join(import.meta.dirname, "golden");
const scratch = scratchFolder("golden");

test("a run folder of the version before is read: its log, its trajectory, its record and its row", async () => {
  const run = join(scratch, "run");
  await cp(join(golden, "run"), run, { recursive: true });
  const store = new DiskStore(join(run, "sessions"));
  const [session = ""] = await store.list();
  const [trajectory] = await readTrajectories(run);
  assert.ok(trajectory);
  const rebuilt = reconstruct(await store.read(session));
  assert.deepEqual(rebuilt.nodes, trajectory.nodes);
  const [record] = await readRollouts(run);
  assert.deepEqual(
    [record?.schema_version, record?.state, record?.verdict?.reward, record?.sandbox?.isolation],
    [recordVersions.rollout.now, "done", 1, "none"],
  );
  const rows = await Array.fromAsync(readJsonLines(join(golden, "rows.jsonl"), (row) => FlatRow.parse(row)));
  assert.deepEqual(verifyRows(trajectory, rows), []);
});

test("a session of the version before goes on in its log", async () => {
  const folder = join(scratch, "again");
  await cp(join(golden, "run/sessions"), folder, { recursive: true });
  const store = new DiskStore(folder);
  const [session = ""] = await store.list();
  const before = await store.read(session);
  {
    await using log = await store.open(session);
    await log.append({ type: "rewarded", time: 1, revision: 2, reward: 0, components: {} });
  }
  assert.equal((await store.read(session)).length, before.length + 1);
  assert.ok((await readFile(join(folder, `${session}.jsonl`), "utf8")).startsWith('{"type":"opened"'));
});
