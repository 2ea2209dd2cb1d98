import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { loadAllocations } from "../../../../cli/commands/service/load-allocations.ts";
import { GroupPart, SetSpec, SqliteLedger } from "../../../../service/ledger/index.ts";
import { scratchFolder } from "../../../fakes/machine/scratch-folder.ts";
import { attemptResult } from "../../../fakes/records/attempt-result.ts";

const scratch = scratchFolder("plug-in-flags");

const again = `export default {
  name: "once",
  title: "later samples for a task that no earlier group of the set had",
  more: ({ task, most, first }) => (task.total === null ? most - first : 0),
};`;

test("a policy of a user's own file decides by the history of its task", async () => {
  const file = join(scratch, "once.mjs");
  await writeFile(file, again);
  const allocations = await loadAllocations([file], () => undefined);
  await using ledger = SqliteLedger.open(join(scratch, "ledger.sqlite"), { allocations });
  const { set_id } = await ledger.putSet("s", SetSpec.parse({ samples: 3, allocation: { policy: "once", first: 2, most: 4 } }));
  const lease = await ledger.join({ name: "n", slots: 9 });
  const later: number[] = [];
  for (const [key, task_id] of [
    ["a", "other"],
    ["b", "fix"],
    ["c", "fix"],
  ]) {
    await ledger.submit(set_id, [
      GroupPart.parse({ group_key: key, task: { task_id, instruction: "Do it.", grader: { kind: "script", command: ["true"] } } }),
    ]);
    for (const claim of await ledger.claim(lease, 9)) await ledger.finish(claim, attemptResult());
    const more = await ledger.claim(lease, 9);
    for (const claim of more) await ledger.finish(claim, attemptResult());
    later.push(more.length);
  }
  assert.deepEqual(later, [1, 1, 0], "what is spared by none is not there to give");
});

test("a file that is no allocation policy is refused in one sentence", async () => {
  const file = join(scratch, "none.mjs");
  await writeFile(file, `export default { name: "none", title: "nothing" };`);
  await assert.rejects(
    loadAllocations([file], () => undefined),
    {
      code: "plugin_invalid",
      param: "allocation_policies",
      message: `${file} cannot be used as an allocation policy: its default export has no member more (a function)`,
    },
  );
});
