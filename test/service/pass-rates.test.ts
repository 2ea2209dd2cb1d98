/** Submissions that are chosen by how often their tasks were passed in earlier sets. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ServiceClient } from "../../index.ts";
import type { Claim } from "../../service/ledger/index.ts";
import { pythonClient } from "../fakes/processes/python-client.ts";
import { serviceAt, serviceTask } from "../fakes/proxies/service-at.ts";
import { attemptResult } from "../fakes/records/attempt-result.ts";
import { need } from "../needs.ts";

const groupOf = (task_id: string) => ({ group_key: task_id, task: { ...serviceTask, task_id } });
const linesOf = (...ids: string[]) => ids.map((id) => JSON.stringify(groupOf(id))).join("\n");
const failed = { state: "failed", reward: null, mask_reason: "sandbox_died", error: { code: "sandbox_died", message: "it died" } } as const;

/** A set whose tasks were passed twice, once and never, and one that gave nothing. */
async function measured(service: Awaited<ReturnType<typeof serviceAt>>): Promise<string> {
  const { call, ledger, lease } = service;
  const set = (await call("PUT", "/sets/earlier", { samples: 2 })).body.set_id;
  await call("POST", `/sets/${set}/groups`, linesOf("easy", "some", "hard", "broken"));
  const rewards: Record<string, (number | null)[]> = { easy: [1, 1], some: [1, 0], hard: [0, 0.5], broken: [null, null] };
  for (const claim of (await ledger.claim(lease, 8)) as Claim[]) {
    const reward = rewards[claim.task.task_id]?.[claim.index] ?? null;
    await ledger.finish(claim, attemptResult(reward === null ? failed : { reward }));
  }
  return set;
}

test("a submission takes the tasks in the range of an earlier set, over HTTP and by both clients; an unknown rate is told and is no 0", async (t) => {
  const service = await serviceAt(t);
  const { call, url } = service;
  const of = await measured(service);
  const { tasks, open } = (await call("GET", `/sets/${of}/pass-rates`)).body;
  const rates = tasks.map(({ task_id, measured, passed, pass_rate }: Record<string, unknown>) => [task_id, measured, passed, pass_rate]);
  assert.deepEqual(rates.sort(), [
    ["broken", 0, 0, null],
    ["easy", 2, 2, 1],
    ["hard", 2, 0, 0],
    ["some", 2, 1, 0.5],
  ]);
  assert.deepEqual(
    [
      open,
      tasks.every(
        (one: { pass_interval: { low: number; high: number } | null }) =>
          one.pass_interval === null || (one.pass_interval.low >= 0 && one.pass_interval.high <= 1),
      ),
    ],
    [0, true],
  );
  assert.equal(
    (await call("GET", `/sets/${of}/pass-rates?pass=0.5`)).body.tasks.find((one: { task_id: string }) => one.task_id === "hard").passed,
    1,
  );

  const later = (await call("PUT", "/sets/later", { samples: 2 })).body.set_id;
  const asked = linesOf("easy", "some", "hard", "broken", "unseen");
  const { groups, left_out } = (await call("POST", `/sets/${later}/groups?pass_rate=0..0.9&of=${of}`, asked)).body;
  assert.deepEqual(
    [groups, left_out.map(({ task_id, why }: Record<string, string>) => `${task_id} ${why}`)],
    [2, ["easy outside", "broken unmeasured", "unseen unmeasured"]],
  );
  const more = (await call("POST", `/sets/${later}/groups?pass_rate=0..0.9&of=${of}&with_unmeasured=true`, asked)).body;
  assert.deepEqual([more.groups, more.rollouts, more.left_out.length], [4, 4, 1], "the two of before are there already");

  await using client = ServiceClient.at(url, "all");
  const left: string[] = [];
  const choice = { pass_rate: "0.1..0.9", of: [of], onLeftOut: ({ group_key }: { group_key: string }) => void left.push(group_key) };
  const set = await client.set("typescript", { samples: 2 });
  assert.deepEqual([await set.submit(["easy", "some", "unseen"].map(groupOf), undefined, choice), left], [2, ["easy", "unseen"]]);
  assert.deepEqual((await (await client.setOf(of)).passRates()).tasks, tasks);

  if (!(await need(t, "python"))) return;
  const script = `import json, sys, alidade
service, left = alidade.Service(sys.argv[1], 'all'), []
run = service.set('python', samples=2)
task = json.loads(${JSON.stringify(JSON.stringify(serviceTask))})
groups = [(name, {**task, 'task_id': name}) for name in ('easy', 'some', 'unseen')]
new = run.submit(groups, pass_rate='0.1..0.9', of='${of}', on_left_out=left.append)
print(json.dumps([new, [one['task_id'] + ' ' + one['why'] for one in left], len(service.set('earlier', samples=2).pass_rates())]))`;
  assert.deepEqual(JSON.parse(await pythonClient(script, url)), [2, ["easy outside", "unseen unmeasured"], 4]);
});

test("a pass rate that cannot be meant, and an earlier set that is not there, are refused by field and value", async (t) => {
  const service = await serviceAt(t);
  const { call } = service;
  const set = (await call("PUT", "/sets/s", {})).body.set_id;
  for (const [query, status, message] of [
    ["pass_rate=0.9..0.1&of=seta", 400, /0\.9\.\.0\.1.*give two numbers from 0 to 1/],
    ["pass_rate=0.1..0.9", 400, /of is missing beside pass_rate: give both/],
    ["of=seta", 400, /pass_rate is missing beside of: give both/],
    [`pass_rate=0..1&of=${Array(21).fill(set).join(",")}`, 400, /of has 21 sets: give 20 at most/],
    ["pass_rate=0..1&of=setb", 404, /setb/],
  ] as const) {
    const answer = await call("POST", `/sets/${set}/groups?${query}`, linesOf("a"));
    assert.deepEqual([answer.status, message.test(answer.body.error.message)], [status, true], answer.body.error.message);
  }
});
