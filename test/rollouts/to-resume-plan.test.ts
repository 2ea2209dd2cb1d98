/** How a rollout goes on whose process died, by its last record and its log. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Task } from "../../base/schema/task.ts";
import { toResumePlan } from "../../rollouts/replay/to-resume-plan.ts";
import { LogBuilder, user } from "../fakes/records/log-builder.ts";

const plan = (again_tokens: number, finished: number) => {
  const log = new LogBuilder();
  for (let call = 0; call < finished; call++) log.call({ messages: [user("Repair it.")], sampled: [5, 6, 2] });
  return toResumePlan(
    { read: async () => log.entries },
    {
      record: {
        session_id: "sestest",
        harness: "mini",
        harness_version: "1",
        task_hash: "h",
        resume: { how: "again", spared_tokens: 0, again_tokens, why: "the log of the parked rollout was gone" },
      },
      task: Task.parse({ task_id: "t", instruction: "Do it.", grader: { kind: "script", command: ["true"] } }),
      task_hash: "h",
      harness: { name: "mini", version: "1" },
      wanted: "replay",
    },
  );
};

test("why a rollout was begun anew is kept by each later attempt, whether it goes on or begins anew", async () => {
  const why = "the log of the parked rollout was gone";
  for (const again_tokens of [0, 7]) {
    assert.deepEqual(await plan(again_tokens, 1), { how: "replay", session_id: "sestest", sampled_tokens: 3, again_tokens, why });
    assert.deepEqual(await plan(again_tokens, 0), { how: "again", again_tokens, why });
  }
});
