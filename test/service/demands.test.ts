/** What a service demands of verdicts stands in each set, so that it holds at nodes that know nothing of the service's flags. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";
import { serviceAt, serviceTask } from "../fakes/proxies/service-at.ts";

const scratch = scratchFolder("demands");
const line = JSON.stringify({ group_key: "g", task: serviceTask });

test("each set has what the service demands, or what its trainer demands where that is more", async (t) => {
  const { call, ledger, lease } = await serviceAt(t, { demands: { min_tier: "T2", admitted_only: true } });
  const specOf = async (key: string, body: object) => (await call("PUT", `/sets/${key}`, body)).body.spec;
  for (const [key, min_tier, kept] of [
    ["none", undefined, "T2"],
    ["less", "T0", "T2"],
    ["more", "T3", "T3"],
  ] as const) {
    const spec = await specOf(key, { samples: 1, ...(min_tier && { min_tier }) });
    assert.deepEqual([spec.min_tier, spec.admitted_only], [kept, true]);
  }
  const { set_id } = (await call("PUT", "/sets/none", { samples: 1 })).body;
  assert.equal((await call("POST", `/sets/${set_id}/groups`, line)).status, 200);
  const [claim] = await ledger.claim(lease, 1);
  assert.equal(claim?.spec.min_tier, "T2");
});

test("a service that was started with more demands takes nothing more into the sets of before", async (t) => {
  const path = join(scratch, "ledger.sqlite");
  const before = await serviceAt(t, { path });
  const { set_id } = (await before.call("PUT", "/sets/s", { samples: 2 })).body;
  assert.equal((await before.call("POST", `/sets/${set_id}/groups`, line)).status, 200);
  await before.close();
  const { call } = await serviceAt(t, { path, demands: { min_tier: "T1" } });
  const one = { group_key: "h", index: 0, task: serviceTask };
  for (const answer of [
    await call("PUT", "/sets/s", { samples: 2 }),
    await call("POST", `/sets/${set_id}/groups`, line),
    await call("POST", `/sets/${set_id}/rollouts`, one),
  ]) {
    assert.equal(answer.status, 409);
    assert.match(JSON.stringify(answer.body), /was made with no demands, and min_tier T1 is demanded now/);
  }
});
