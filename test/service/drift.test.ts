/** A trainer's logprobs over HTTP: what the service answers is what `fidelity --trainer-logprobs` says of the same trajectories. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { AlidadeError } from "../../base/errors.ts";
import { Drift, type DriftSummary, TrainerLogprobs } from "../../reconstruct/index.ts";
import { putPacked } from "../../service/blobs/index.ts";
import { pythonClient } from "../fakes/processes/python-client.ts";
import { serviceAt, serviceGroups } from "../fakes/proxies/service-at.ts";
import { attemptResult } from "../fakes/records/attempt-result.ts";
import { goldenTrajectory } from "../fakes/records/golden-session.ts";
import { need } from "../needs.ts";

/** Reads rows and tells of all their trained tokens: the recorded numbers, moved by so many nats. */
const trainer = `
import json, sys
from alidade import Service, trainer_logprobs
run = Service(sys.argv[1], "all").set("a", samples=1)
rows = [row for group in run.groups(whole=False) for row in group.rows]
moved = lambda row: [None if one is None else one - float(sys.argv[2]) for one in row["logprobs"]]
print(json.dumps(run.drift([line for row in rows for line in trainer_logprobs(row, moved(row))], tolerance=0.1)))
`;

/** A set with the golden session as the only rollout that is over, and one that is not. */
async function measured(t: Parameters<typeof serviceAt>[0]) {
  const at = await serviceAt(t);
  const { call, ledger, blobs, lease } = at;
  const set = (await call("PUT", "/sets/a", { samples: 1 })).body.set_id;
  await call("POST", `/sets/${set}/groups`, serviceGroups("over", "open"));
  const [over, open] = await ledger.claim(lease, 2);
  assert.ok(over && open);
  const trajectory = goldenTrajectory({ reward: 1, rollout_id: over.rollout_id });
  await ledger.finish(over, attemptResult({ payload: await putPacked(blobs, `${set}/r/1`, trajectory) }));
  const told = trajectory.calls.flatMap(({ call_id }) => {
    const logprobs = trajectory.nodes
      .filter((node) => node.call_id === call_id && node.kind === "sampled")
      .flatMap((node) => node.logprobs ?? []);
    return logprobs.length === 0
      ? []
      : [{ call_id, logprobs: logprobs.map((one) => (one === null ? null : one - 1)), rollout_id: over.rollout_id }];
  });
  const post = (lines: readonly unknown[], query = "") =>
    call("POST", `/sets/${set}/drift${query}`, lines.map((line) => JSON.stringify(line)).join("\n"));
  return { ...at, set, over, open, trajectory, told, post };
}

test("a trainer's logprobs are held against stored rollouts as a file is against a run, and nothing of them is kept", async (t) => {
  const { post, told, trajectory, open } = await measured(t);
  const drift = new Drift(0.05, (message) => new AlidadeError("internal", message));
  for (const one of told) drift.tell(TrainerLogprobs.parse(one));
  drift.add(trajectory);
  const { status, body } = await post(told);
  assert.deepEqual([status, body], [200, JSON.parse(JSON.stringify(drift.summary))]);
  assert.ok(body.compared > 0 && body.max > 0.99 && Object.keys(body.causes).length > 0);
  const wide: DriftSummary = (await post(told, "?tolerance=2")).body;
  assert.deepEqual([wide.causes, wide.tolerance], [{}, 2]);
  const unknown = [...told, { call_id: "__proto__", logprobs: [-1], rollout_id: open.rollout_id }];
  assert.deepEqual([(await post(unknown)).body.unknown_calls, (await post([])).body.mean], [1, null]);
});

test("what is wrong with a line is named, and a rollout that the set has not is not found", async (t) => {
  const { post, told } = await measured(t);
  const [first] = told;
  const refused = async (line: object): Promise<[number, string]> => {
    const { status, body } = await post([{ ...first, policy_version: "one" }, line]);
    return [status, body.error.message];
  };
  const { rollout_id: _, ...nameless } = first ?? { rollout_id: "" };
  for (const line of [nameless, { ...first, rollout_id: null }]) {
    const [status, message] = await refused(line);
    assert.deepEqual([status, /^line 2: rollout_id is /.test(message)], [400, true], message);
  }
  assert.deepEqual((await refused({ ...first, logprobs: [] }))[0], 400);
  assert.deepEqual((await refused({ ...first, rollout_id: "rollnone" }))[0], 404);
  const [status, message] = await refused({ ...first, policy_version: "two" });
  assert.deepEqual([status, /is told of two policy versions: one, two/.test(message)], [400, true], message);
});

test("a line that adds a token to a call is read alone, however long the call is", () => {
  const drift = new Drift(0.05, (message) => new AlidadeError("internal", message));
  const said = { call_id: "long", rollout_id: null, policy_version: null };
  drift.tell({ ...said, logprobs: Array.from({ length: 10_000 }, () => null) });
  let reads = 0;
  const logprobs = new Proxy([-1], {
    get(list, name, self): unknown {
      if (typeof name === "string" && /^\d+$/.test(name)) reads += 1;
      return Reflect.get(list, name, self);
    },
  });
  for (let line = 0; line < 10; line++) drift.tell({ ...said, logprobs });
  assert.ok(reads < 100, `${reads} reads of ten lists of one`);
});

test("the parts of a call that stand on several lines are held against the record as one list", async (t) => {
  const { post, told } = await measured(t);
  const [whole] = told.filter(({ logprobs }) => logprobs.length > 1);
  assert.ok(whole);
  const { logprobs } = whole;
  const together: DriftSummary = (await post([whole])).body;
  const first = { ...whole, logprobs: logprobs.slice(0, 1) };
  const others = { ...whole, logprobs: logprobs.map((one, at) => (at === 0 ? null : one)) };
  for (const parts of [
    [first, others],
    [others, first],
  ])
    assert.deepEqual((await post(parts)).body, together);
});

test("the Python client sends what it makes of rows, and gets the summary", async (t) => {
  if (!(await need(t, "python"))) return;
  const { url, call, set, ledger, open } = await measured(t);
  await ledger.finish(open, attemptResult({ payload: null }));
  await call("POST", `/sets/${set}/drain`, {});
  const drift = async (off: number): Promise<DriftSummary> => JSON.parse(await pythonClient(trainer, url, String(off)));
  const [same, moved] = [await drift(0), await drift(1)];
  assert.ok(same.compared > 0);
  assert.deepEqual([same.max, same.causes, same.unknown_calls, moved.compared], [0, {}, 0, same.compared]);
  assert.notDeepEqual(moved.causes, {});
});
