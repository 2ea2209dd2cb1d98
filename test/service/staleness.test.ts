/** What a trainer gets of old and mixed policies, and of groups that end early. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { putPacked } from "../../service/blobs/index.ts";
import type { Claim } from "../../service/ledger/index.ts";
import { type isMixed, othersOfGroup } from "../../service/stale-rows.ts";
import { serviceAt, serviceGroups } from "../fakes/proxies/service-at.ts";
import { attemptResult } from "../fakes/records/attempt-result.ts";
import { goldenTrajectory } from "../fakes/records/golden-session.ts";

type Service = Awaited<ReturnType<typeof serviceAt>>;
type Segment = { kind: string; policy_step: number | null; trainable: boolean; reason: string | null };

const twoPolicies = { oldest_step: 1, newest_step: 2, policies: [1, 2].map((step) => ({ version: `v${step}`, step })) };
const ofStep = (step: number) => ({ oldest_step: step, newest_step: step, policies: [{ version: `v${step}`, step }] });

/** A rollout that begins at step 1 and ends at step 2 in a set with this bound. */
async function staleIn(service: Service, key: string, more: object) {
  const { call, ledger, lease, blobs } = service;
  await call("PUT", "/control/policy", { version: "v1", step: 1 });
  const set = (await call("PUT", `/sets/${key}`, { samples: 1, max_version_lag: 0, groups_per_step: 1, ...more })).body.set_id;
  await call("POST", `/sets/${set}/groups`, serviceGroups("g"));
  const [claim] = await ledger.claim(lease, 1);
  await call("PUT", "/control/policy", { version: "v2", step: 2 });
  const payload = await putPacked(blobs, `${set}/r/1`, goldenTrajectory({ reward: 1 }));
  await ledger.finish(claim as Claim, attemptResult({ payload, ...twoPolicies }));
  const ask = async (query = "") => (await call("GET", `/sets/${set}/results?payload=rows&whole_groups=true${query}`)).body[0];
  return { ask };
}

const sampledOf = (rows: { segments: Segment[] }[]): Segment[] =>
  rows.flatMap(({ segments }) => segments).filter(({ kind }) => kind === "sampled");

test("a rollout that is stale at its end is delivered with its lag, and its old tokens are masked one by one", async (t) => {
  const service = await serviceAt(t);
  const { ask } = await staleIn(service, "mask", {});
  const line = await ask();
  const { lag, stale, oldest_step, newest_step, policy_step } = line.results[0];
  assert.deepEqual([lag, stale, oldest_step, newest_step, policy_step], [1, true, 1, 2, 2]);
  const sampled = sampledOf(line.rows);
  assert.ok(sampled.some(({ policy_step, trainable }) => policy_step === 2 && trainable));
  for (const { policy_step, trainable, reason } of sampled)
    if (policy_step === 1) assert.deepEqual([trainable, reason], [false, "stale_policy"]);
  assert.ok(line.report.left_out.stale_policy > 0);

  const later = await ask("&step=3");
  assert.deepEqual([later.results[0].lag, later.rows, later.report.left_out_rollouts], [2, [], {}], "at step 3 both are too old");
  const before = await ask("&step=1");
  assert.deepEqual([before.results[0].lag, before.results[0].stale, before.report.left_out.stale_policy], [0, false, undefined]);
  assert.deepEqual(await ask(), line, "what is served again is the same");
});

test("what is stale is delivered as it is, or left out with its row, where a set asks for it", async (t) => {
  const service = await serviceAt(t);
  const delivered = await (await staleIn(service, "deliver", { on_stale: "deliver" })).ask();
  assert.deepEqual([delivered.results[0].stale, delivered.report.left_out.stale_policy], [true, undefined]);
  assert.ok(sampledOf(delivered.rows).some(({ policy_step, trainable }) => policy_step === 1 && trainable));
  const left = await (await staleIn(service, "leave", { on_stale: "leave_out" })).ask();
  assert.deepEqual([left.results[0].stale, left.rows, left.report.left_out_rollouts], [true, [], { stale_policy: 1 }]);
});

test("a group of several policies is labelled, and with group_versions same the others are out of loss and baseline", async (t) => {
  const { call, ledger, lease, blobs } = await serviceAt(t);
  for (const [key, group_versions, rows] of [
    ["any", "any", 3],
    ["same", "same", 2],
  ] as const) {
    const set = (await call("PUT", `/sets/${key}`, { samples: 3, group_versions })).body.set_id;
    await call("POST", `/sets/${set}/groups`, serviceGroups("g"));
    for (const [at, claim] of (await ledger.claim(lease, 3)).entries()) {
      const facts = { reward: at % 2, rollout_id: claim.rollout_id, group: { id: "g", size: 3, sample_index: at } };
      const payload = await putPacked(blobs, `${set}/${at}/1`, goldenTrajectory(facts));
      await ledger.finish(claim, attemptResult({ payload, ...ofStep(at === 1 ? 1 : 2) }));
    }
    const [line] = (await call("GET", `/sets/${set}/results?payload=rows&whole_groups=true`)).body;
    assert.equal(line.mixed_policies, true);
    assert.equal(new Set(line.rows.map(({ rollout_id }: { rollout_id: string }) => rollout_id)).size, rows, key);
    assert.equal(line.results.length, 3);
    const single = await call("GET", `/sets/${set}/results?payload=rows`);
    assert.equal(single.status, group_versions === "same" ? 400 : 200);
    if (single.status === 400) assert.match(single.body.error.message, /group_versions is same.*whole_groups=true/);
  }
});

test("a group's policy is the one that sampled most of it alone, the newest of equals", () => {
  const row = (rollout_id: string, more: object) =>
    ({ ...attemptResult(more), rollout_id }) as unknown as Parameters<typeof isMixed>[0][number];
  const same = { group_versions: "same" } as const;
  const others = (...rows: Parameters<typeof row>[]) => [
    ...othersOfGroup(
      rows.map((one) => row(...one)),
      same,
    ),
  ];
  assert.deepEqual(others(["a", ofStep(1)], ["b", ofStep(2)], ["c", ofStep(1)]), ["b"]);
  assert.deepEqual(others(["a", ofStep(1)], ["b", ofStep(2)]), ["a"]);
  assert.deepEqual(others(["a", ofStep(1)], ["b", twoPolicies], ["c", {}]), ["b"], "one without a call was sampled by none");
  assert.deepEqual(others(["a", twoPolicies], ["b", twoPolicies]), ["a", "b"]);
  assert.deepEqual(others(["a", ofStep(1)], ["c", {}]), []);
});

test("the rest of an over-provisioned group is beside it, and each rollout has one result", async (t) => {
  const { call, ledger, lease } = await serviceAt(t);
  const set = (await call("PUT", "/sets/a", { samples: 2, over_provision: 1 })).body.set_id;
  assert.equal((await call("POST", `/sets/${set}/groups`, serviceGroups("g"))).body.rollouts, 3);
  for (const claim of (await ledger.claim(lease, 3)).toReversed()) await ledger.finish(claim, attemptResult());
  const [line] = (await call("GET", `/sets/${set}/results?whole_groups=true`)).body;
  const places = (rows: { index: number; state: string; biases: string[] }[]) => rows.map(({ index, state }) => [index, state]);
  assert.deepEqual(places(line.results), [
    [1, "completed"],
    [2, "completed"],
  ]);
  assert.deepEqual([places(line.spare), line.spare[0].biases, line.group_size], [[[0, "cancelled"]], ["over_provision"], 2]);
  assert.equal((await call("GET", `/sets/${set}/results`)).body.length, 3);
});

test("fields that contradict each other are one sentence that names field and value", async (t) => {
  const parks = { seconds: 1, rest: "park" };
  const { call } = await serviceAt(t);
  for (const [body, param, message] of [
    [{ max_version_lag: 2 }, "groups_per_step", /max_version_lag is 2: say with it how many groups/],
    [{ groups_per_step: 4 }, "max_version_lag", /groups_per_step is 4: it belongs to max_version_lag/],
    [{ max_version_lag: 0, groups_per_step: 4, purpose: "eval" }, "max_version_lag", /max_version_lag is 0 in a set of the purpose eval/],
    [{ seed: 7 }, "seed", /seed is 7 in a set of the purpose train: .*leave it out/],
    [{ seed: 7, purpose: "eval", sampling: [{}, { seed: 1 }] }, "seed", /seed is 7 beside a seed in sampling: give one of them/],
    [{ pinned_policy: "in_force", policy_mode: "float" }, "policy_mode", /policy_mode is float beside pinned_policy: leave it out/],
    [
      { samples: 4, allocation: { policy: "balanced", first: 5, most: 8 } },
      "allocation",
      /first 5 and most 8: samples \(4\) must lie between/,
    ],
    [
      { over_provision: 1, allocation: { policy: "balanced", first: 2, most: 8 } },
      "over_provision",
      /over_provision is 1 beside allocation/,
    ],
    [
      { purpose: "eval", allocation: { policy: "balanced", first: 2, most: 8 } },
      "allocation",
      /purpose eval, whose tasks are sampled alike/,
    ],
    [{ samples: 4, early_stop: 5 }, "early_stop", /early_stop is 5: give 4 \(samples\) at most/],
    [{ max_version_lag: -1, groups_per_step: 1 }, "max_version_lag", /max_version_lag/],
    [{ on_stale: "drop" }, "on_stale", /on_stale/],
    [{ straggler_cut: { share: 2, seconds: 1 } }, "straggler_cut.share", /straggler_cut\.share/],
    [{ straggler_cut: { seconds: 1, park_most: 3 } }, "straggler_cut", /park_most without rest: park: give `rest: park`/],
    [{ straggler_cut: { seconds: 1, rest: "cancel", park_seconds: 3 } }, "straggler_cut", /park_seconds without rest: park/],
    [{ straggler_cut: { seconds: 1, rest: "park", park_most: 0 } }, "straggler_cut.park_most", /park_most/],
    [{ straggler_cut: { seconds: 1, rest: "hold" } }, "straggler_cut.rest", /straggler_cut\.rest/],
    [{ purpose: "eval", straggler_cut: parks }, "straggler_cut", /purpose eval, whose rollouts belong to their group/],
    [{ policy_mode: "pin", straggler_cut: parks }, "straggler_cut", /beside policy_mode pin/],
    [{ pinned_policy: "in_force", straggler_cut: parks }, "straggler_cut", /beside pinned_policy/],
    [{ group_versions: "same", straggler_cut: parks }, "straggler_cut", /beside group_versions same/],
    [{ samples: 2, branching: { policy: "uniform", leaves: 4 }, straggler_cut: parks }, "straggler_cut", /beside branching/],
  ] as const) {
    const { status, body: answer } = await call("PUT", "/sets/wrong", body);
    assert.deepEqual([status, answer.error.param], [400, param], JSON.stringify(body));
    assert.match(answer.error.message, message);
  }
});
