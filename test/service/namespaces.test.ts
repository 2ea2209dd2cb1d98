/** A token of one namespace against what is another's: each route, on each ledger. */
import assert from "node:assert/strict";
import { test as nodeTest, type TestContext } from "node:test";
import { putPacked } from "../../service/blobs/index.ts";
import type { Claim } from "../../service/ledger/index.ts";
import { ledgerDrivers } from "../contracts/ledger-drivers.ts";
import { serviceAt, serviceTask } from "../fakes/proxies/service-at.ts";
import { attemptResult } from "../fakes/records/attempt-result.ts";
import { goldenTrajectory } from "../fakes/records/golden-session.ts";
import { need } from "../needs.ts";

/** What team A has. */
type Owned = { set: string; cursor: string; rollout: string; open: string; key: string };

type Asked = { path: string; body?: unknown; headers?: Record<string, string> };
/**
 * hidden: it names what is A's, and is answered as if that were not there. own: it lists or makes what is the token's own.
 * beyond: nodes, engines and weights serve all namespaces, so the role alone counts.
 */
type Kind = "hidden" | "own" | "beyond";

const groupOf = (group_key: string) => JSON.stringify({ group_key, task: serviceTask });
const polarTask = {
  task_id: "task-of-a",
  instruction: "Fix it",
  agent: { harness: "claude_code" },
  runtime: { image: "runtime:latest" },
  evaluator: { strategy: "script", config: { command: ["true"] } },
};
const events = { accept: "text/event-stream" };
const told = { rollout_id: "none", call_id: "call", logprobs: [0] };

/** Each route with a request that is A's to make. In an order in which A can make all of them. */
const asks: Record<string, [Kind, (owned: Owned) => Asked]> = {
  "GET /tasks": ["own", () => ({ path: "/tasks" })],
  "PUT /sets/:key": ["own", ({ key }) => ({ path: `/sets/${key}`, body: { samples: 2, labels: { word: "word-of-a" } } })],
  "POST /sets/:id/groups": ["hidden", ({ set }) => ({ path: `/sets/${set}/groups`, body: groupOf("more") })],
  "POST /sets/:id/rollouts": [
    "hidden",
    ({ set }) => ({ path: `/sets/${set}/rollouts`, body: { group_key: "single", index: 0, task: serviceTask } }),
  ],
  "GET /sets": ["own", () => ({ path: "/sets" })],
  "GET /sets/:id": ["hidden", ({ set }) => ({ path: `/sets/${set}` })],
  "GET /sets/:id/results": ["hidden", ({ set }) => ({ path: `/sets/${set}/results?payload=trajectory` })],
  "GET /sets/:id/results as events": ["hidden", ({ set }) => ({ path: `/sets/${set}/results?limit=1`, headers: events })],
  "GET /sets/:id/rollouts/:rollout": ["hidden", ({ set, rollout }) => ({ path: `/sets/${set}/rollouts/${rollout}?payload=record` })],
  "GET /sets/:id/figures": ["hidden", ({ set }) => ({ path: `/sets/${set}/figures` })],
  "GET /sets/:id/pass-rates": ["hidden", ({ set }) => ({ path: `/sets/${set}/pass-rates` })],
  "POST /sets/:id/drift": ["hidden", ({ set, rollout }) => ({ path: `/sets/${set}/drift`, body: { ...told, rollout_id: rollout } })],
  "GET /metrics": ["own", () => ({ path: "/metrics" })],
  "PUT /consumers/:name": ["hidden", ({ set, cursor }) => ({ path: "/consumers/trainer", body: { set, cursor, step: 1 } })],
  "DELETE /consumers/:name": ["hidden", ({ set }) => ({ path: `/consumers/trainer?set=${set}` })],
  "DELETE /sets/:id/rollouts/:rollout": ["hidden", ({ set, open }) => ({ path: `/sets/${set}/rollouts/${open}` })],
  "DELETE /sets/:id/groups/:key": ["hidden", ({ set }) => ({ path: `/sets/${set}/groups/group-of-a` })],
  "DELETE /sets/:id": ["hidden", ({ set }) => ({ path: `/sets/${set}` })],
  "POST /sets/:id/drain": ["hidden", ({ set }) => ({ path: `/sets/${set}/drain`, body: {} })],
  "POST /rollout/task/submit": ["own", () => ({ path: "/rollout/task/submit", body: { ...polarTask, task_id: "task-of-both" } })],
  "GET /rollout/task/:task_id": ["hidden", () => ({ path: "/rollout/task/task-of-a" })],
  "DELETE /rollout/task/:task_id": ["hidden", () => ({ path: "/rollout/task/task-of-a" })],
  "GET /rollout/status": ["own", () => ({ path: "/rollout/status" })],
  "GET /health": ["beyond", () => ({ path: "/health" })],
  "GET /nodes": ["beyond", () => ({ path: "/nodes" })],
  "GET /blobs/ledger.id": ["beyond", () => ({ path: "/blobs/ledger.id" })],
  "PUT /blobs/:set/:rollout/:name": ["beyond", ({ set }) => ({ path: `/blobs/${set}/r/1-0000000000000000.json.zst`, body: {} })],
  "PUT /blobs/:set/:rollout/logs/:name": ["beyond", ({ set }) => ({ path: `/blobs/${set}/r/logs/1-1.json.zst`, body: {} })],
  "GET /blobs/:set/:rollout/logs/:name": ["beyond", ({ set }) => ({ path: `/blobs/${set}/r/logs/1-1.json.zst` })],
  "DELETE /blobs/:set/:rollout/logs/:attempt": ["beyond", ({ set }) => ({ path: `/blobs/${set}/r/logs/1` })],
  "PUT /control/policy": ["beyond", () => ({ path: "/control/policy", body: { version: "one", step: 1 } })],
  "POST /control/pause": ["beyond", () => ({ path: "/control/pause", body: { fence: "f", mode: "hold" } })],
  "POST /control/resume": ["beyond", () => ({ path: "/control/resume", body: { fence: "f" } })],
  "POST /nodes/:name/drain": ["beyond", () => ({ path: "/nodes/n/drain", body: {} })],
};
const renamed = (asked: Asked): Asked => JSON.parse(JSON.stringify(asked).replaceAll("-of-a", "-of-b"));

for (const { name, needs, place } of ledgerDrivers()) {
  const test = (title: string, work: (t: TestContext) => Promise<void>) =>
    nodeTest(`${name}: ${title}`, async (t) => {
      if (needs === undefined || (await need(t, needs))) await work(t);
    });
  const begun = async (t: TestContext) => {
    const at = place();
    const service = await serviceAt(t, { open: () => at.open() });
    const { call, ledger, blobs, lease } = service;
    await blobs.put("ledger.id", Buffer.from(ledger.id));
    const { set_id: set } = (await call("PUT", "/sets/key-of-a", { samples: 2, labels: { word: "word-of-a" } }, "team-a")).body;
    await call("POST", `/sets/${set}/groups`, groupOf("group-of-a"), "team-a");
    const [done, running] = (await ledger.claim(lease, 2)) as [Claim, Claim];
    const payload = await putPacked(blobs, `${set}/${done.rollout_id}/1`, goldenTrajectory({ reward: 1 }));
    await ledger.finish(done, attemptResult({ payload }));
    const [line] = await ledger.results(set, null, 1);
    const owned = { set, key: "key-of-a", cursor: line?.cursor as string, rollout: done.rollout_id, open: running.rollout_id };
    await call("PUT", "/consumers/trainer", { set, cursor: owned.cursor, step: null }, "team-a");
    await call("POST", "/rollout/task/submit", polarTask, "team-a");
    const ask = async (route: string, { path, body, headers = {} }: Asked, token: string) => {
      const [method = ""] = route.split(" ");
      const answer = await fetch(service.url + path, {
        method,
        headers: { authorization: `Bearer ${token}`, ...headers },
        ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
      });
      return { status: answer.status, text: await answer.text() };
    };
    const seen = async () => ({
      states: (await ledger.sets("team-a")).map(({ oldest, ...state }) => state),
      rows: await ledger.results(set, null, 99),
      groups: await ledger.wholeGroups(set, null, 99),
    });
    return { ...service, owned, ask, seen };
  };

  test("each route is asked, and one for submit or read reaches beyond namespaces only for what has no owner", async (t) => {
    const { listener } = await begun(t);
    const routes = listener.routes.map(({ method, path }) => `${method.toUpperCase()} ${path}`);
    const asked = new Set(Object.keys(asks).map((route) => route.replace(/ as .*/, "")));
    assert.deepEqual([...asked].sort(), routes.sort(), "say here what a route shows to a token of another namespace");
    const beyond = listener.routes.filter(({ method, path }) => asks[`${method.toUpperCase()} ${path}`]?.[0] === "beyond");
    const ofTrainers = beyond.filter(({ roles }) => roles.some((role) => role === "submit" || role === "read"));
    assert.deepEqual(ofTrainers.map(({ path }) => path).sort(), ["/health", "/nodes"]);
  });

  test("what is another namespace's is answered as what never was, is in no list, and stays as it is", async (t) => {
    const { owned, ask, seen } = await begun(t);
    const before = await seen();
    const none = { ...owned, set: "setnone", cursor: owned.cursor.replace(owned.set, "setnone") };
    for (const [route, [kind, of]] of Object.entries(asks)) {
      if (kind === "beyond") continue;
      // What it makes it makes under names of its own.
      const { status, text } = await ask(route, kind === "own" ? renamed(of(owned)) : of(owned), "team-b");
      if (kind === "own") assert.ok(status < 300, `${route}: ${status} ${text}`);
      else {
        const never = await ask(route, of(none), "team-b");
        assert.deepEqual([status, never.status], [404, 404], `${route}: ${text}`);
        assert.equal(text.replaceAll(owned.set, "setnone"), never.text, route);
      }
      if (kind === "own") assert.doesNotMatch(text, new RegExp(`of-a|${owned.set}`), route);
      assert.deepEqual(await seen(), before, route);
    }
  });

  test("its owner may ask all of it, and so may a token that sees all", async (t) => {
    const { owned, ask, call } = await begun(t);
    for (const token of ["all", "read"]) {
      assert.equal((await call("GET", `/sets/${owned.set}`, undefined, token)).body.namespace, "team-a");
      assert.match((await ask("GET", { path: "/metrics" }, token)).text, /set="key-of-a"/);
    }
    for (const [route, [, of]] of Object.entries(asks)) {
      const { status, text } = await ask(route, of(owned), "team-a");
      // A trajectory is named by the hash of its bytes. These bytes have another hash.
      const expected = route === "PUT /blobs/:set/:rollout/:name" ? status === 400 : status < 300;
      assert.ok(expected, `${route}: ${status} ${text}`);
    }
  });

  test("two namespaces have sets and tasks of Polar's under one name, each its own", async (t) => {
    const { call, owned } = await begun(t);
    const other = (await call("PUT", "/sets/key-of-a", { samples: 7 }, "team-b")).body;
    assert.notEqual(other.set_id, owned.set);
    assert.deepEqual(
      (await call("GET", "/sets", undefined, "team-b")).body.sets.map(({ set_id }: { set_id: string }) => set_id),
      [other.set_id],
    );
    assert.equal((await call("POST", "/rollout/task/submit", { ...polarTask, instruction: "Other" }, "team-b")).status, 200);
    await call("DELETE", "/rollout/task/task-of-a", undefined, "team-b");
    const statuses = async (token: string) => (await call("GET", "/rollout/status", undefined, token)).body.tasks;
    assert.deepEqual(await statuses("team-b"), { "task-of-a": "cancelled" });
    assert.deepEqual(await statuses("team-a"), { "task-of-a": "running" });
    assert.deepEqual(await statuses("all"), {}, "the operator's own, for ids are of a namespace");
  });
}
