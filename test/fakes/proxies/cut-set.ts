/** A service with a set of cut rollouts: the engine told which tokens their sampling kept. */
import type { TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { putAllPacked } from "../../../service/blobs/index.ts";
import { until } from "../machine/until.ts";
import { attemptResult } from "../records/attempt-result.ts";
import { cutRecords } from "../records/cut-records.ts";
import { serviceAt } from "./service-at.ts";

/** The set is `s`, of one rollout a group. Its rollouts end as the cut one when `finish` is called. */
export async function cutSet(t: TestContext) {
  const { call, ledger, lease, blobs, url } = await serviceAt(t);
  const records = await cutRecords();
  const set: string = (await call("PUT", "/sets/s", { samples: 1 })).body.set_id;
  const finish = async (): Promise<void> => {
    for (const claim of await ledger.claim(lease, 9)) {
      const payload = await putAllPacked(blobs, `${claim.set_id}/${claim.rollout_id}/1`, records);
      await ledger.finish(claim, attemptResult({ payload }));
    }
  };
  const isQueued = async () => {
    // A trainer's imports take long on a busy machine: the wait must leave it the cores.
    await sleep(100);
    return (await call("GET", `/sets/${set}`)).body.rollouts.queued > 0;
  };
  return { call, set, url, finish, whenQueued: () => until(isQueued, { ms: 240_000 }).then(finish) };
}
