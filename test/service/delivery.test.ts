/** Lines of results: rows that are too long for a line, and experts. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { readJson } from "../../base/schema/read-json.ts";
import { putPacked } from "../../service/blobs/index.ts";
import { DeliveryQuery, deliveryOf } from "../../service/delivery.ts";
import type { Claim } from "../../service/ledger/index.ts";
import { serviceAt, serviceGroups } from "../fakes/proxies/service-at.ts";
import { attemptResult } from "../fakes/records/attempt-result.ts";
import { goldenTrajectory } from "../fakes/records/golden-session.ts";

type Line = { rows: unknown[]; report: { trajectories: number; rows: number; left_out_rollouts: Record<string, number> } };

test("rows that are too long for a line are left out with a reason, and other lines keep their rows", async (t) => {
  const { call, ledger, lease, blobs } = await serviceAt(t);
  const set = (await call("PUT", "/sets/a", { samples: 2 })).body.set_id;
  await call("POST", `/sets/${set}/groups`, serviceGroups("g"));
  for (const claim of (await ledger.claim(lease, 2)) as Claim[]) {
    const payload = await putPacked(blobs, `${set}/${claim.rollout_id}/1`, goldenTrajectory({ reward: 1 }));
    await ledger.finish(claim, attemptResult({ payload }));
  }
  const rows = (await ledger.results(set, null, 10, "skip")).map(({ row }) => row);
  const spec = await ledger.specOf(set);
  const query = DeliveryQuery.parse({ payload: "rows" });
  const line = async (of: typeof rows, longest?: number) => {
    const textOf = await deliveryOf(blobs, query, false, spec, longest);
    return readJson(`{"a":1${await textOf(of, t.signal)}}`) as Line;
  };

  const [one, two] = [await line(rows.slice(0, 1)), await line(rows)];
  assert.ok(one.rows.length > 0 && two.rows.length === 2 * one.rows.length);
  const longest = JSON.stringify(one.rows).length;
  assert.deepEqual(await line(rows.slice(0, 1), longest), one, "a line that fits is as it was");
  const { rows: none, report } = await line(rows, longest);
  assert.deepEqual([none, report.rows, report.trajectories, report.left_out_rollouts], [[], 0, 2, { line_too_long: 2 }]);
});

test("rows name the experts of their tokens only if the query asks for them", async (t) => {
  const { call, ledger, lease, blobs } = await serviceAt(t);
  const set = (await call("PUT", "/sets/a", { samples: 1 })).body.set_id;
  await call("POST", `/sets/${set}/groups`, serviceGroups("g"));
  const trajectory = goldenTrajectory({ reward: 1 });
  const [node] = trajectory.nodes;
  assert.ok(node);
  const rows = node.token_ids.length;
  const of = { node_id: node.node_id, span: [0, rows] as [number, number], row: 0, shape: [rows, 2, 1], ref: "a".repeat(64) };
  const routed = { ...trajectory, blobs: [{ name: "routed_experts", dtype: "uint8", ...of }] };
  const [claim] = await ledger.claim(lease, 1);
  assert.ok(claim);
  const payload = await putPacked(blobs, `${set}/${claim.rollout_id}/1`, routed);
  await ledger.finish(claim, attemptResult({ payload }));
  const results = (await ledger.results(set, null, 10, "skip")).map(({ row }) => row);
  const spec = await ledger.specOf(set);
  const namesExperts = async (query: Record<string, string>) => {
    const textOf = await deliveryOf(blobs, DeliveryQuery.parse({ payload: "rows", ...query }), false, spec);
    const { rows: made } = readJson(`{"a":1${await textOf(results, t.signal)}}`) as Line;
    assert.ok(made.length > 0);
    return made.some((row) => Object.keys(row as object).includes("routing"));
  };

  assert.equal(await namesExperts({ experts: "true" }), true);
  assert.equal(await namesExperts({}), false);
});
