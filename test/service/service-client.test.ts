/** The client for programs in TypeScript, at a service that goes away and comes back. */
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { type DeliveredGroup, type FlatRow, ServiceClient } from "../../index.ts";
import { putPacked } from "../../service/blobs/index.ts";
import { type Claim, SqliteLedger } from "../../service/ledger/index.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";
import { until } from "../fakes/machine/until.ts";
import { pythonClient } from "../fakes/processes/python-client.ts";
import { serviceAt, serviceTask } from "../fakes/proxies/service-at.ts";
import { attemptResult } from "../fakes/records/attempt-result.ts";
import { goldenTrajectory } from "../fakes/records/golden-session.ts";

const folder = scratchFolder("service-client");
const groups = (...keys: string[]) => keys.map((group_key) => ({ group_key, task: serviceTask }));

type Service = Awaited<ReturnType<typeof serviceAt>>;

/** A service whose address is in the folder. */
async function started(t: TestContext, path?: string): Promise<Service> {
  const service = await serviceAt(t, path === undefined ? {} : { path });
  await writeFile(join(folder, "service.json"), JSON.stringify({ url: service.url, token: "all" }));
  return service;
}

/** Ends all that is queued, with a trajectory. */
async function finishAll({ ledger, lease, blobs }: Service): Promise<void> {
  for (const claim of (await ledger.claim(lease, 9)) as Claim[]) {
    const payload = await putPacked(blobs, `${claim.set_id}/${claim.rollout_id}/1`, goldenTrajectory({ reward: 1 }));
    await ledger.finish(claim, attemptResult({ payload }));
  }
}

async function listOf<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

test("groups come once each with rows and cursor, through a service that is started again elsewhere, and from a kept cursor on", {
  timeout: 300_000,
}, async (t) => {
  const first = await started(t);
  await using client = ServiceClient.of(folder);
  const run = await client.set("s", { samples: 2 });
  assert.deepEqual([await run.submit(groups("g", "h")), await run.submit(groups("g", "h", "i"))], [4, 2]);
  await assert.rejects(client.set("s", { samples: 3 }), { code: "request_invalid", status: 409, param: "key" });
  await finishAll(first);
  const taken = run.groups<FlatRow>();
  const one = (await taken.next()).value as DeliveredGroup<FlatRow>;
  assert.deepEqual([one.group_key, one.results.map(({ reward }) => reward), one.rows?.[0]?.reward], ["g", [1, 1], 1]);
  await run.keep(one.cursor);
  await run.keep(one.cursor, { consumer: "gone for good" });
  await run.forget("gone for good");
  assert.deepEqual((await run.state()).consumers, { trainer: one.cursor });

  await first.close();
  await started(t, first.path);
  await run.drain();
  const rest = await listOf(taken);
  assert.deepEqual(
    rest.map(({ group_key }) => group_key),
    ["h", "i"],
  );
  const again = await listOf(run.groups({ after: one.cursor, payload: "none" }));
  assert.deepEqual(
    again.map(({ cursor, rows }) => [cursor, rows]),
    rest.map(({ cursor }) => [cursor, undefined]),
  );
  assert.equal((await listOf(run.results({ payload: "trajectory", limit: 4 }))).length, 6);
  assert.equal((await run.state()).rollouts.completed, 6);
});

test("one rollout is waited for, weights are named behind the fence, and what is cancelled ends", async (t) => {
  const service = await started(t);
  await using client = ServiceClient.at(service.url, "all");
  const run = await client.set("s", { samples: 2 });
  const waiting = run.rollout({ group_key: "g", index: 1, task: serviceTask }, { payload: "trajectory" });
  await until(async () => (await run.state()).rollouts.queued > 0);
  await finishAll(service);
  const { result, trajectories } = await waiting;
  assert.deepEqual([result.index, result.reward, trajectories?.length], [1, 1, 1]);

  const shut: (string | null)[] = [];
  await client.weights({ version: "second", step: 2 }, async () => {
    shut.push((await client.health()).status);
  });
  assert.deepEqual(shut, ["paused"]);
  assert.equal((await service.ledger.control()).policies[0]?.policy.version, "second");

  await run.submit(groups("h"));
  assert.equal(await run.cancel({ group: "h" }), 2);
  assert.equal((await run.figures()).set_id, run.id);
  const drift = await run.drift([{ call_id: trajectories?.[0]?.calls[0]?.call_id ?? "", rollout_id: result.rollout_id, logprobs: [-1] }]);
  assert.equal(drift.calls.length, 1);
  assert.deepEqual(
    (await client.sets()).map(({ key }) => key),
    ["s"],
  );
  assert.equal((await client.nodes()).length, 1);
});

test("a service that stays away, and a token that it does not know, are errors that say so", async (t) => {
  const service = await started(t);
  await using stranger = ServiceClient.at(service.url, "guessed");
  await assert.rejects(stranger.sets(), { code: "unauthorized", status: 401 });
  await service.close();
  await using client = ServiceClient.at(service.url, "all", { patience: 0 });
  await assert.rejects(client.sets(), /no service answers at http:\/\/127\.0\.0\.1:\d+: /);
  await using waiting = ServiceClient.at(service.url, "all");
  await assert.rejects(waiting.sets(AbortSignal.timeout(200)), { name: "TimeoutError" });
});

test("the client in Python refuses what can be no address at once, and says what one looks like", async () => {
  const script = `
from alidade import Service
for url in ("10.0.0.1:8700", "localhost:8700", "http://", "http:/x", "http://[::1", "http://a:port", "ftp://a", "http://a:1/b", "HTTPS://a", None):
    try: Service(url)
    except ValueError as error: print(error)
    else: print(f"takes {url}")`;
  const refused = ["10.0.0.1:8700", "localhost:8700", "http://", "http:/x", "http://[::1", "http://a:port", "ftp://a"];
  const said = refused.map((url) => `url is '${url}': give the service's whole address, such as http://10.0.0.1:8700`);
  assert.deepEqual((await pythonClient(script)).trim().split("\n"), [
    ...said,
    ...["http://a:1/b", "HTTPS://a", "None"].map((url) => `takes ${url}`),
  ]);
});

test("a client sends groups of many rollouts in several requests, and one that is too large is refused with what fits", async (t) => {
  const sizes: number[] = [];
  const service = await serviceAt(t, {
    open: async (path) => {
      const ledger = SqliteLedger.open(path);
      const submit = ledger.submit.bind(ledger);
      ledger.submit = (set, parts) => {
        sizes.push(parts.length);
        return submit(set, parts);
      };
      return ledger;
    },
  });
  await using client = ServiceClient.at(service.url, "all");
  const many = Array.from({ length: 7 }, (_, at) => `g${at}`);
  const run = await client.set("large", { samples: 900, over_provision: 100 });
  assert.equal(await run.submit(groups(...many)), 7_000);
  assert.deepEqual(sizes, [2, 2, 2, 1]);
  const script = `
import sys
from alidade import Service
run = Service(*sys.argv[1:]).set("of python", samples=1500)
print(run.submit((f"g{n}", {"task_id": "t", "instruction": "Do it.", "grader": {"kind": "script", "command": ["true"]}}) for n in range(8)))`;
  assert.equal(await pythonClient(script, service.url, "all"), "12000\n");
  assert.deepEqual(sizes.slice(4), Array(8).fill(1));
  const lines = Array.from({ length: 11 }, (_, at) => JSON.stringify({ group_key: `h${at}`, task: serviceTask }));
  const { status, body } = await service.call("POST", `/sets/${run.id}/groups`, lines.join("\n"));
  assert.deepEqual(
    [status, body.error.message],
    [
      413,
      "the request has 11 groups with 11000 rollouts: send 10 groups at most (10000 rollouts) with one request, and the others with further ones",
    ],
  );
});
