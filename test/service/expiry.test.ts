/** Results of a service that expire: what is removed, and what readers are told. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { Limiter } from "../../base/host/limiter.ts";
import { ServiceClient } from "../../index.ts";
import { putPacked } from "../../service/blobs/index.ts";
import { ExpirySweep, GroupHints } from "../../service/index.ts";
import { HintLine } from "../../service/webhooks/hint-line.ts";
import { until } from "../fakes/machine/until.ts";
import { cli } from "../fakes/processes/cli.ts";
import { pythonClient } from "../fakes/processes/python-client.ts";
import { serviceAt, serviceGroups, serviceTask } from "../fakes/proxies/service-at.ts";
import { attemptResult } from "../fakes/records/attempt-result.ts";
import { goldenTrajectory } from "../fakes/records/golden-session.ts";
import { need } from "../needs.ts";

/** A set of the groups g and h, of which a consumer has g behind its cursor and which is expired. */
async function expiredAt(t: TestContext) {
  const service = await serviceAt(t);
  const { ledger, blobs, lease, url } = service;
  const client = ServiceClient.at(url, "all");
  t.after(() => client[Symbol.asyncDispose]());
  const run = await client.set("s", { samples: 2 });
  await run.submit(["g", "h"].map((group_key) => ({ group_key, task: serviceTask })));
  for (const claim of await ledger.claim(lease, 9)) {
    const payload = await putPacked(blobs, `${claim.set_id}/${claim.rollout_id}/1`, goldenTrajectory({ reward: 1 }));
    // An attempt that was fenced left one too.
    await putPacked(blobs, `${claim.set_id}/${claim.rollout_id}/2`, goldenTrajectory({ reward: 0 }));
    await ledger.finish(claim, attemptResult({ payload }));
  }
  const [first] = await ledger.wholeGroups(run.id, null, 1);
  await run.keep(first?.cursor as string);
  const notes: string[] = [];
  {
    await using _sweep = new ExpirySweep({ ledger, blobs, byDefault: 0, note: (text) => notes.push(text) }, 1);
    await until(async () => (await run.state()).expired !== null && (await ledger.removals(1)).length === 0);
  }
  assert.deepEqual(notes, []);
  return { ...service, run, cursor: first?.cursor as string };
}

async function keysOf(groups: AsyncIterable<{ group_key: string }>): Promise<string[]> {
  const keys: string[] = [];
  for await (const { group_key } of groups) keys.push(group_key);
  return keys;
}

test("expired results are gone with all their trajectories, and a reader from before them is refused", async (t) => {
  const { run, call, cursor, blobs, url } = await expiredAt(t);
  const isThere = (group: number) => existsSync(join(blobs.place, run.id, `${run.id}-${group}-0`));
  assert.deepEqual([isThere(0), isThere(1)], [false, true]);
  await run.drain();
  await assert.rejects(keysOf(run.groups()), {
    code: "not_found",
    status: 410,
    param: "after",
    message: new RegExp(`cursor ${cursor} are expired`),
  });
  assert.deepEqual(await keysOf(run.groups({ after: cursor })), ["h"]);
  assert.deepEqual(await keysOf(run.groups({ expired: "skip" })), ["h"]);
  const events = await fetch(`${url}/sets/${run.id}/results`, { headers: { authorization: "Bearer all", accept: "text/event-stream" } });
  assert.equal(events.status, 410);
  assert.equal((await call("GET", `/sets/${run.id}/rollouts/${run.id}-0-0`)).status, 410);

  const { rollouts, groups, expired, is_over } = await run.state();
  assert.deepEqual([rollouts.completed, groups.whole, expired?.groups, expired?.rollouts, is_over], [4, 2, 1, 2, true]);
  const { counted, expired: removed } = await run.figures();
  assert.deepEqual([counted, removed], [2, 2]);
  const metrics = await (await fetch(`${url}/metrics`, { headers: { authorization: "Bearer all" } })).text();
  assert.match(metrics, /^alidade_expired_rollouts\{[^}]*\} 2$/m);
  assert.match(metrics, /^alidade_rollouts\{[^}]*state="completed"\} 4$/m);

  const env = { ALIDADE_SERVICE_TOKEN: "all" };
  const refused = await cli(["results", "--url", url], { env });
  assert.match(refused.stderr, /are expired: say expired=skip for what is left/);
  const { stdout } = await cli(["results", "--url", url, "--skip-expired", "--json"], { env });
  assert.equal(stdout.trim().split("\n").length, 2);

  if (!(await need(t, "python"))) return;
  const told = await pythonClient(
    `import sys, alidade
run = alidade.Service(sys.argv[1], "all").set("s", samples=2)
try:
    list(run.groups(payload="none"))
except alidade.ServiceError as error:
    print(error.status)
print([group.key for group in run.groups(expired="skip")])`,
    url,
  );
  assert.equal(told.trim(), "410\n['h']");
});

test("a webhook counts groups that are expired", async (t) => {
  const { ledger, run } = await expiredAt(t);
  const bodies: string[] = [];
  const server = createServer(async (request, response) => {
    bodies.push(Buffer.concat(await request.toArray()).toString("utf8"));
    response.end();
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const service = { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, secret: "s", mayBePrivate: true };
  await using _hints = new GroupHints(ledger, { service, sets: null }, () => undefined, 1);
  await until(() => bodies.length > 0);
  const last = (await ledger.wholeGroups(run.id, null, 9, "skip")).at(-1)?.cursor;
  assert.deepEqual(JSON.parse(bodies[0] ?? ""), { set: run.id, key: "s", whole_groups: 2, cursor: last });
});

test("a hint that is sent again counts groups that expired meanwhile", async (t) => {
  const { ledger, lease, call } = await serviceAt(t);
  const { set_id: set } = (await call("PUT", "/sets/a", { samples: 1 })).body;
  await call("POST", `/sets/${set}/groups`, serviceGroups("g", "h"));
  for (const claim of await ledger.claim(lease, 9)) await ledger.finish(claim, attemptResult());
  const [first, last] = await ledger.wholeGroups(set, null, 9);
  const bodies: string[] = [];
  const server = createServer(async (request, response) => {
    bodies.push(Buffer.concat(await request.toArray()).toString("utf8"));
    if (bodies.length === 1) {
      await ledger.keep("c", set, { cursor: first?.cursor as string, step: null });
      await until(async () => (await ledger.expireResults(0)) === 1);
    }
    response.writeHead(bodies.length === 1 ? 500 : 204).end();
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const notes: string[] = [];
  const line = new HintLine({
    ledger,
    webhook: { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, secret: null, mayBePrivate: true },
    note: (text) => notes.push(text),
    pauseMs: 1,
    places: new Limiter(1),
    tries: 3,
    signal: AbortSignal.timeout(20_000),
  });
  line.look(await ledger.set(set), true);
  await line.ended;
  assert.equal(notes.length, 1);
  assert.deepEqual(bodies, [bodies[0], JSON.stringify({ set, key: "a", whole_groups: 2, cursor: last?.cursor })]);
});

test("blobs that cannot be removed are tried again, and said once", async (t) => {
  const { ledger, blobs, lease, call } = await serviceAt(t);
  const { set_id: set } = (await call("PUT", "/sets/a", { samples: 1 })).body;
  await call("POST", `/sets/${set}/groups`, JSON.stringify({ group_key: "g", task: serviceTask }));
  for (const claim of await ledger.claim(lease, 1)) await ledger.finish(claim, attemptResult());
  const [group] = await ledger.wholeGroups(set, null, 1);
  await ledger.keep("c", set, { cursor: group?.cursor as string, step: null });
  let tries = 0;
  const away = {
    place: "away",
    put: blobs.put.bind(blobs),
    get: blobs.get.bind(blobs),
    removeBelow: async (name: string) => {
      tries += 1;
      if (tries < 4) throw new Error(`${name} is away`);
    },
  };
  const notes: string[] = [];
  await using _sweep = new ExpirySweep({ ledger, blobs: away, byDefault: 0, note: (text) => notes.push(text) }, 1);
  await until(async () => tries === 4 && (await ledger.removals(1)).length === 0);
  assert.deepEqual(notes, [`what is needed no more is not removed: ${set}/${set}-0-0 is away; it is tried again`]);
});

test("a blob that cannot be removed holds up no other one and no expiry", async (t) => {
  const { ledger, blobs, lease, call } = await serviceAt(t);
  const { set_id: set } = (await call("PUT", "/sets/a", { samples: 1 })).body;
  const finished = async (...keys: string[]) => {
    const parts = keys.map((group_key) => JSON.stringify({ group_key, task: serviceTask }));
    await call("POST", `/sets/${set}/groups`, parts.join("\n"));
    for (const claim of await ledger.claim(lease, 9)) await ledger.finish(claim, attemptResult());
    const cursor = (await ledger.wholeGroups(set, null, 9, "skip")).at(-1)?.cursor as string;
    await ledger.keep("c", set, { cursor, step: null });
  };
  const stuck = [`${set}-0-0`, `${set}-1-0`];
  const removed: string[] = [];
  const folder = {
    place: "folder",
    put: blobs.put.bind(blobs),
    get: blobs.get.bind(blobs),
    removeBelow: async (name: string) => {
      if (stuck.some((id) => name.endsWith(id))) throw new Error(`${name} is held`);
      removed.push(name.slice(set.length + 1));
    },
  };
  const notes: string[] = [];
  await finished("g", "h", "i");
  await using _sweep = new ExpirySweep({ ledger, blobs: folder, byDefault: 0, note: (text) => notes.push(text) }, 1);
  await until(() => removed.length === 1 && notes.length === 1);
  await finished("j");
  await until(() => removed.length === 2);
  assert.deepEqual(removed, [`${set}-2-0`, `${set}-3-0`]);
  assert.deepEqual(
    (await ledger.removals(9)).map(({ rollout_id }) => rollout_id),
    stuck,
  );
  assert.deepEqual(notes, [
    `what is needed no more is not removed: ${set}/${set}-0-0 is held (the first of 2 failures); it is tried again`,
  ]);
});

test("--expire-after and --expire-logs-after want hours", async () => {
  const args = ["service", "--engine", "http://127.0.0.1:1", "--harness", "pi", "--expire-after"];
  for (const hours of ["0", "-1", "soon"]) {
    const { code, stderr } = await cli([...args, hours]);
    assert.deepEqual([code, /--expire-after.* is .*: give hours, more than 0|argument .soon. is invalid/.test(stderr)], [2, true], stderr);
  }
  const logs = async (...more: string[]) => (await cli([...args.slice(0, -1), "--expire-logs-after", ...more])).stderr;
  assert.match(await logs("0.5"), /--expire-logs-after is 0\.5: give hours, 1 or more/);
  assert.match(await logs("24", "--ledger", "postgres://nowhere/none"), /--expire-logs-after goes to the nodes/);
});
