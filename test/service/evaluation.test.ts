/** Sets that measure a policy: their figures, and that nothing of them is trained. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { evaluationText } from "../../cli/commands/overview/evaluation-text.ts";
import { exporters } from "../../exporters/registry.ts";
import { putPacked } from "../../service/blobs/index.ts";
import type { Claim } from "../../service/ledger/index.ts";
import { figureRoute, type SetStepFigures } from "../../service/routes/figure-route.ts";
import { SetTallies } from "../../service/set-tallies.ts";
import { pythonClient } from "../fakes/processes/python-client.ts";
import { callerOfAll, serviceAt, serviceTask } from "../fakes/proxies/service-at.ts";
import { attemptResult } from "../fakes/records/attempt-result.ts";
import { goldenTrajectory } from "../fakes/records/golden-session.ts";
import { need } from "../needs.ts";

const groupOf = (task_id: string) => JSON.stringify({ group_key: task_id, task: { ...serviceTask, task_id } });
const ofStep = (step: number) => ({ oldest_step: step, newest_step: step, policies: [{ version: `v${step}`, step }] });
const failed = { state: "failed", reward: null, mask_reason: "sandbox_died", error: { code: "sandbox_died", message: "it died" } } as const;

test("an evaluation has pass@k and mean by task with intervals; what has no reward is counted aside, and each policy is named", async (t) => {
  const { call, ledger, lease, url } = await serviceAt(t);
  const set = (await call("PUT", "/sets/eval", { samples: 4, purpose: "eval", early_stop: 4 })).body.set_id;
  await call("POST", `/sets/${set}/groups`, ["a", "b", "c"].map(groupOf).join("\n"));
  const rewards = [1, 1, 0, 0, 1, 0, 0, 0, 1, 1, null];
  for (const [at, claim] of (await ledger.claim(lease, rewards.length)).entries()) {
    const reward = rewards[at] ?? null;
    await ledger.finish(claim as Claim, attemptResult(reward === null ? failed : { reward, ...ofStep(at === 0 ? 6 : 7) }));
  }
  const { evaluation } = (await call("GET", `/sets/${set}/figures`)).body;
  const { tasks, rollouts, measured, mean_reward, unmeasured, policies, open, biases } = evaluation;
  assert.deepEqual([tasks, rollouts, measured, unmeasured, open, biases], [3, 11, 10, { sandbox_died: 1 }, 1, ["early_stop"]]);
  assert.deepEqual(policies, [
    { version: "v6", step: 6, results: 1 },
    { version: "v7", step: 7, results: 9 },
  ]);
  assert.equal(mean_reward, (0.5 + 0.25 + 1) / 3, "each task weighs the same");
  assert.ok(evaluation.mean_interval.low < mean_reward && mean_reward < evaluation.mean_interval.high);
  const ks = evaluation.pass_at_k.map(({ k, value }: { k: number; value: number }) => [k, Number(value.toFixed(4))]);
  assert.deepEqual(ks, [
    [1, 0.5833],
    [2, Number(((5 / 6 + 1 / 2 + 1) / 3).toFixed(4))],
  ]);
  const half = (await call("GET", `/sets/${set}/figures?pass=0`)).body.evaluation.pass_at_k[0];
  assert.deepEqual([half.value, half.interval.high, half.interval.low < 1], [1, 1, true]);
  const text = evaluationText(evaluation);
  assert.match(text, /10 of 11 results of 3 tasks have a reward/);
  assert.match(text, /no figure: 1 sandbox_died\n.*a mixture of policies, with its results: "v6" \(step 6\) 1, "v7" \(step 7\) 9/);
  assert.match(text, /1 rollouts are not over.*\n.*biased by early_stop[\s\S]*pass@2/);

  if (!(await need(t, "python"))) return;
  const script =
    "import json, sys, alidade; print(json.dumps(alidade.Service(sys.argv[1], 'all').set('eval', samples=4, purpose='eval', early_stop=4).evaluation()))";
  assert.deepEqual(JSON.parse(await pythonClient(script, url)), evaluation);
});

test("a set that is trained has no evaluation, and one without results has no figure", async (t) => {
  const { call } = await serviceAt(t);
  const train = (await call("PUT", "/sets/train", {})).body.set_id;
  assert.equal((await call("GET", `/sets/${train}/figures`)).body.evaluation, null);
  const set = (await call("PUT", "/sets/eval", { purpose: "eval" })).body.set_id;
  const { evaluation } = (await call("GET", `/sets/${set}/figures`)).body;
  assert.deepEqual([evaluation.mean_reward, evaluation.mean_interval, evaluation.pass_at_k, evaluation.rollouts], [null, null, [], 0]);
});

test("a rollout that ends while the figures are read counts as open in them", async (t) => {
  const { call, ledger, lease } = await serviceAt(t);
  const set = (await call("PUT", "/sets/eval", { samples: 1, purpose: "eval" })).body.set_id;
  await call("POST", `/sets/${set}/groups`, groupOf("a"));
  const [claim] = await ledger.claim(lease, 1);
  class OverBehind extends SetTallies {
    override async of(...asked: Parameters<SetTallies["of"]>) {
      const found = await super.of(...asked);
      await ledger.finish(claim as Claim, attemptResult({ reward: 1 }));
      return found;
    }
  }
  const query = { last: 20, pass: 1 };
  const { signal } = new AbortController();
  const asked = { param: () => set, body: null, lines: [], query, signal, context: null as never };
  const { evaluation } = (await figureRoute(new OverBehind(ledger)).handle(asked, callerOfAll(ledger))) as SetStepFigures;
  assert.deepEqual([evaluation?.rollouts, evaluation?.open], [0, 1]);
});

test("no format for training is served of an evaluation: its results, trajectories and what shows them are", async (t) => {
  const { call, ledger, lease, blobs } = await serviceAt(t);
  const set = (await call("PUT", "/sets/eval", { samples: 1, purpose: "eval" })).body.set_id;
  await call("POST", `/sets/${set}/groups`, groupOf("a"));
  const payload = await putPacked(blobs, `${set}/r/1`, { ...goldenTrajectory(), purpose: "eval" });
  for (const claim of await ledger.claim(lease, 1)) await ledger.finish(claim, attemptResult({ payload }));
  for (const { name, objective, extension } of exporters) {
    if (extension !== "jsonl") continue;
    const { status, body } = await call("GET", `/sets/${set}/results?payload=rows&whole_groups=true&format=${name}`);
    assert.equal(status, objective === "any" ? 200 : 400, name);
    if (status === 400) assert.match(body.error.message, /the set is an evaluation, and the format .* is for training: take payload=none/);
  }
  assert.equal((await call("GET", `/sets/${set}/results?payload=trajectory`)).body[0].trajectories.length, 1);
});
