/** Checks how a node goes on from the copy that another node left. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import type { Task } from "../../../base/schema/task.ts";
import { pickBackend } from "../../../sandboxes/registry.ts";
import { FolderBlobs } from "../../../service/blobs/index.ts";
import { GroupPart, SetSpec, SqliteLedger } from "../../../service/ledger/index.ts";
import { Attempts } from "../../../service/nodes/attempts.ts";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";
import { runner } from "../../fakes/rollouts/small-run.ts";
import { solve, writeTask } from "../../fakes/rollouts/small-task.ts";

const scratch = scratchFolder("left-copy");

test("a copy that cannot be read costs what it held: the rollout begins anew, is graded, and says why", { timeout: 300_000 }, async (t) => {
  await writeTask(scratch, "small");
  const run = await runner(t, scratch, {
    path: join(scratch, "run"),
    retries: 0,
    reply: solve,
    does: async (setup, { tasks, harness, session }, signal) => {
      await using ledger = SqliteLedger.open(join(scratch, "ledger.sqlite"));
      const blobs = new FolderBlobs(join(scratch, "trajectories"));
      const { set_id: set } = await ledger.putSet("s", SetSpec.parse({ samples: 1 }));
      await ledger.submit(set, [GroupPart.parse({ group_key: "g", task: tasks[0] as Task })]);
      const claimed = async () => (await ledger.claim(await ledger.join({ name: "n", slots: 1 }), 1))[0] ?? assert.fail();
      const { rollout_id } = await claimed();
      const part = `${set}/${rollout_id}/logs/1-1.json.zst`;
      await blobs.put(part, Buffer.from("torn"));
      const claim = await claimed();
      assert.equal(claim.attempt, 2);
      const shared = { isShared: true, result: ledger.result.bind(ledger), cancel: ledger.cancel.bind(ledger) };
      const attempts = new Attempts({ ledger: shared, blobs, setup, harnessNamed: async () => harness, session }, signal);
      const { result, settled } = await attempts.make(claim, { signal, drain: signal }, "any");
      assert.deepEqual([result?.reward, result?.resume?.how, result?.resume?.spared_tokens], [1, "again", 0]);
      assert.match(result?.resume?.why ?? "", /the copy .*logs\/1-1\.json\.zst of a session log is damaged/);
      await settled?.();
      assert.equal(await blobs.get(part), null);
      return [];
    },
  });
  await run((await pickBackend("process", t.signal)).backend);
});
