/** The service's HTTP over a real ledger and a real proxy; the test itself is the node. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { putPacked } from "../../service/blobs/index.ts";
import { roles } from "../../service/index.ts";
import type { Claim } from "../../service/ledger/index.ts";
import { pythonClient } from "../fakes/processes/python-client.ts";
import { serviceAt, serviceGroups, serviceTask } from "../fakes/proxies/service-at.ts";
import { attemptResult } from "../fakes/records/attempt-result.ts";
import { breakLedger } from "../fakes/records/break-ledger.ts";
import { goldenTrajectory } from "../fakes/records/golden-session.ts";
import { need } from "../needs.ts";

test("without a token nothing is answered, and a token opens what its roles say", async (t) => {
  const { call, listener, url } = await serviceAt(t);
  for (const path of ["/health", "/sets", "/openapi.json"]) assert.equal((await call("GET", path, undefined, "wrong")).status, 401, path);
  const opened: Record<string, string> = {};
  for (const route of listener.routes) {
    const method = route.method.toUpperCase();
    const statusFor = async (role: string): Promise<number> => {
      const body = method === "GET" || method === "DELETE" ? null : '{"unknown": 1}';
      const answer = await fetch(url + route.path.replaceAll(/:\w+/g, "none"), {
        method,
        headers: { authorization: `Bearer ${role}` },
        body,
      });
      return answer.status;
    };
    const statuses = await Promise.all(roles.map(statusFor));
    opened[`${method} ${route.path}`] = roles.filter((_, index) => statuses[index] !== 403).join(" ");
  }
  assert.deepEqual(opened, mayOpen);
  const { status, body } = await call("POST", "/sets/none/drain", {}, "node");
  assert.deepEqual([status, body.error.message], [403, "this token has not the role submit"]);
  assert.equal((await call("GET", "/nowhere")).body.error.code, "not_found");
});

/** Each route, and the roles of which one is enough. */
const mayOpen = {
  "PUT /sets/:key": "submit",
  "POST /sets/:id/groups": "submit",
  "POST /sets/:id/rollouts": "submit",
  "POST /sets/:id/drain": "submit",
  "POST /sets/:id/drift": "submit",
  "DELETE /sets/:id": "submit",
  "DELETE /sets/:id/groups/:key": "submit",
  "DELETE /sets/:id/rollouts/:rollout": "submit",
  "PUT /consumers/:name": "submit",
  "DELETE /consumers/:name": "submit",
  "GET /sets": "read",
  "GET /sets/:id": "read",
  "GET /sets/:id/rollouts/:rollout": "read",
  "GET /tasks": "submit",
  "GET /sets/:id/figures": "read",
  "GET /sets/:id/pass-rates": "read",
  "GET /sets/:id/results": "read",
  "GET /metrics": "read",
  "PUT /blobs/:set/:rollout/:name": "node",
  "PUT /blobs/:set/:rollout/logs/:name": "node",
  "GET /blobs/:set/:rollout/logs/:name": "node",
  "DELETE /blobs/:set/:rollout/logs/:attempt": "node",
  "GET /blobs/ledger.id": "node",
  "GET /health": "read node",
  "GET /nodes": "read node",
  "POST /nodes/:name/drain": "control node",
  "POST /control/pause": "control",
  "PUT /control/policy": "control",
  "POST /control/resume": "control",
  "POST /rollout/task/submit": "submit",
  "GET /rollout/task/:task_id": "read",
  "DELETE /rollout/task/:task_id": "submit",
  "GET /rollout/status": "read",
};

test("what is wrong with a request is named by its field, and nothing of it is taken", async (t) => {
  const { call } = await serviceAt(t);
  const refused = async (method: string, path: string, body: unknown, status: number, param: string | null) => {
    const answer = await call(method, path, body);
    assert.deepEqual([answer.status, answer.body.error.param], [status, param], answer.body.error.message);
  };
  await refused("PUT", "/sets/a", { samples: 0 }, 400, "samples");
  await refused("PUT", "/sets/a", { smaples: 1 }, 400, "smaples");
  await refused("PUT", "/sets/a", { harness: "constructor" }, 400, "harness");
  await refused("PUT", "/sets/a", { samples: 2, branching: { leaves: 4, policy: "./mine.ts" } }, 400, "branching.policy");
  await refused("PUT", "/sets/a", { samples: 2, branching: { leaves: 2 } }, 400, "branching");
  const tree = (await call("PUT", "/sets/tree", { samples: 2, branching: { leaves: 4 } })).body.set_id;
  const talks = { ...serviceTask, simulated_user: { instructions: "You want a lamp." } };
  const notForked = await call("POST", `/sets/${tree}/groups`, JSON.stringify({ group_key: "g", task: talks }));
  assert.deepEqual([notForked.status, notForked.body.error.param], [400, "simulated_user"]);
  assert.match(notForked.body.error.message, /task t has a user, .* so its rollouts cannot be forked: run it without branching\./);
  const drifts = JSON.stringify({ group_key: "g", task: { ...serviceTask, environment: { repeatable: false } } });
  await refused("POST", `/sets/${tree}/groups`, drifts, 400, "environment.repeatable");
  const allowing = await call("PUT", "/sets/drifting", { samples: 2, branching: { leaves: 4, unrepeatable: true } });
  assert.equal((await call("POST", `/sets/${allowing.body.set_id}/groups`, drifts)).status, 200);
  const set = (await call("PUT", "/sets/a", { samples: 1 })).body.set_id;
  await refused("PUT", "/sets/a", { samples: 2 }, 409, "key");
  const withTask = (more: object) => `${serviceGroups("good")}\n${JSON.stringify({ group_key: "g", task: { ...serviceTask, ...more } })}`;
  await refused("POST", `/sets/${set}/groups`, withTask({ environment: { files: "/etc" } }), 400, "environment.files");
  await refused("POST", `/sets/${set}/groups`, withTask({ environment: { mounts: { "/x": "/etc" } } }), 400, "environment.mounts./x");
  await refused("POST", `/sets/${set}/groups`, withTask({ environment: { build: { context: "/" } } }), 400, "environment.build.context");
  const nested = { kind: "tests", parser: "node-test", command: ["node"], tests: "/etc", fail_to_pass: ["a"], pass_to_pass: [] };
  const composite = { kind: "composite", combine: "all", parts: [{ name: "a", grader: nested }] };
  await refused("POST", `/sets/${set}/groups`, withTask({ grader: composite }), 400, "grader.parts.0.grader.tests");
  await refused("POST", `/sets/${set}/groups`, withTask({ gold_files: "/etc" }), 400, "gold_files");
  await refused("POST", `/sets/${set}/groups`, withTask({ grader: { kind: "__proto__" } }), 400, "grader.kind");
  await refused("POST", `/sets/${set}/groups`, '{"group_key":""}', 400, "group_key");
  await refused("POST", `/sets/${set}/groups`, JSON.stringify({ group_key: "half \ud800", task: serviceTask }), 400, "group_key");
  await refused("POST", `/sets/${set}/rollouts`, { group_key: "g", index: 1, task: serviceTask }, 400, "index");
  await refused("POST", "/sets/none/groups", serviceGroups("g"), 404, "set");
  await refused("GET", `/sets/${set}/results?limit=0`, undefined, 400, "limit");
  await refused("GET", `/sets/${set}/results?after=7`, undefined, 400, "after");
  await refused("GET", `/sets/${set}/results?payload=rows&format=slime`, undefined, 400, "format");
  await refused("GET", `/sets/${set}/results?payload=rows&format=parquet`, undefined, 400, "format");
  await refused("PUT", "/consumers/c", { set, cursor: "x" }, 400, "after");
  const { groups: kept } = (await call("GET", `/sets/${set}`)).body;
  assert.deepEqual(kept, { open: 0, whole: 0 });
});

test("results come by cursor, with the rows of a format, and a request that waits is answered by the next one", async (t) => {
  const { call, ledger, blobs, lease } = await serviceAt(t);
  const set = (await call("PUT", "/sets/a", { samples: 2 })).body.set_id;
  assert.deepEqual((await call("POST", `/sets/${set}/groups`, serviceGroups("g", "h"))).body, { groups: 2, rollouts: 4, left_out: [] });
  const at = `/sets/${set}/results`;
  assert.deepEqual((await call("GET", at)).body, [""]);
  const waiting = call("GET", `${at}?wait=30&payload=rows`);
  const claims = await ledger.claim(lease, 4);
  const trajectory = goldenTrajectory({ reward: 1 });
  const payload = await putPacked(blobs, `${set}/r/1`, trajectory);
  for (const claim of claims.slice(0, 2)) await ledger.finish(claim as Claim, attemptResult({ payload }));
  const [first] = (await waiting).body;
  assert.equal(first.result.group_key, "g");
  assert.ok(first.rows.length > 0 && first.rows[0].token_ids.length > 0);
  assert.equal(first.report.trajectories, 1);
  const [second, third] = (await call("GET", `${at}?after=${first.cursor}`)).body;
  assert.deepEqual([second.result.index, third], [1, undefined]);
  const [whole, ...more] = (await call("GET", `${at}?whole_groups=true&payload=trajectory`)).body;
  assert.deepEqual([whole.group_key, whole.results.length, whole.trajectories.length, more], ["g", 2, 2, []]);
  const late = `/sets/${set}/rollouts/${(claims[2] as Claim).rollout_id}`;
  assert.deepEqual((await call("GET", late)).body, { result: null });
  const one = call("GET", `${late}?wait=30&payload=rows`);
  assert.deepEqual((await call("DELETE", `/sets/${set}/groups/h?reason=stale`)).body, { cancelled: 2, is_cancelling: false });
  assert.deepEqual((await one).body.result.error, { code: "cancelled", message: "stale" });
  assert.deepEqual((await call("GET", `/sets/${set}`)).body.rollouts, {
    queued: 0,
    running: 0,
    completed: 2,
    failed: 0,
    cancelled: 2,
    held: 0,
  });
});

test("results without a payload come as one text of a known length, and those with one as they are read", async (t) => {
  const { url, call, ledger, lease } = await serviceAt(t);
  const set = (await call("PUT", "/sets/a", { samples: 40 })).body.set_id;
  await call("POST", `/sets/${set}/groups`, serviceGroups("g"));
  for (const claim of await ledger.claim(lease, 40)) await ledger.finish(claim as Claim, attemptResult({ payload: null }));
  const lengths = [];
  for (const payload of ["none", "trajectory"]) {
    const answer = await fetch(`${url}/sets/${set}/results?payload=${payload}`, { headers: { authorization: "Bearer all" } });
    const text = await answer.text();
    assert.equal(text.split("\n").length, 41);
    lengths.push(answer.headers.get("content-length") === String(text.length));
  }
  assert.deepEqual(lengths, [true, false]);
});

test("the OpenAPI document has every route with its fields", async (t) => {
  const { call, listener } = await serviceAt(t);
  const { paths } = (await call("GET", "/openapi.json")).body;
  for (const { method, path } of listener.routes) assert.ok(paths[path.replaceAll(/:(\w+)/g, "{$1}")][method], path);
  assert.ok(paths["/sets/{key}"].put.requestBody.content["application/json"].schema.properties.samples);
  assert.ok(paths["/sets/{id}/results"].get.parameters.some(({ name }: { name: string }) => name === "whole_groups"));
});

test("health names each reason why rollouts do not go on, and a service without its ledger answers 503", async (t) => {
  const { call, ledger, path, slot, url } = await serviceAt(t);
  const health = async () => {
    const { status, body } = await call("GET", "/health");
    return [status, body.status, body.reason];
  };
  assert.deepEqual(await health(), [200, "ok", null]);
  slot.isDraining = true;
  await ledger.drainNode("n");
  const drained = `engine ${slot.name} is draining: POST /engines/${slot.name}/undrain gives it calls again`;
  assert.deepEqual(await health(), [200, "degraded", `no node is at work: n draining; ${drained}`]);
  breakLedger(path);
  const [status, word, reason] = await health();
  assert.deepEqual([status, word], [503, "down"]);
  assert.match(reason, /^the ledger does not answer: ./);
  if (!(await need(t, "python"))) return;
  const told = await pythonClient("import sys, alidade; print(alidade.Service(sys.argv[1], 'read').health()['reason'])", url);
  assert.equal(told.trim(), reason, "the Python client does not wait for another answer");
});

test("a service that ends between a pause and its resume begins behind the gate, with the weights' last name", async (t) => {
  const first = await serviceAt(t);
  await first.call("PUT", "/control/policy", { version: "one", step: 1 });
  const pause = { fence: "trainer", mode: "drain" };
  assert.equal((await first.call("POST", "/control/pause", pause)).body.drained, true);
  assert.equal((await first.call("POST", "/control/pause", pause)).body.fence, "trainer");
  await first.close();

  const second = await serviceAt(t, { path: first.path });
  assert.equal(second.slot.gate?.fence, "trainer");
  assert.deepEqual(second.slot.policy, { version: "one", step: 1 });
  assert.equal((await second.call("GET", "/health")).body.status, "paused");
  assert.equal((await second.call("POST", "/control/pause", pause)).body.fence, "trainer");
  assert.equal((await second.call("PUT", "/control/policy", { version: "two", step: 2, fence: "trainer" })).status, 200);
  for (const _ of [1, 2]) assert.equal((await second.call("POST", "/control/resume", { fence: "trainer" })).status, 200);
  assert.equal((await second.call("POST", "/control/resume", { fence: "other" })).status, 404);
  assert.equal(second.slot.gate, null);
  await second.close();

  const third = await serviceAt(t, { path: first.path });
  assert.deepEqual([third.slot.gate, third.slot.policy], [null, { version: "two", step: 2 }]);
  await third.close();

  const fourth = await serviceAt(t, { path: first.path, weights: "three" });
  assert.notEqual(fourth.slot.gate, null, "the engine serves other weights than the ledger names");
  assert.match(fourth.notes.join("\n"), /says that it serves "three".*PUT \/control\/policy/);
  const { status, reason } = (await fourth.call("GET", "/health")).body;
  assert.deepEqual([status, /^node n: .*says that it serves "three"/.test(reason)], ["degraded", true], reason);
  assert.equal((await fourth.call("PUT", "/control/policy", { version: "three", step: 3 })).status, 200);
  assert.deepEqual([fourth.slot.gate, fourth.slot.policy], [null, { version: "three", step: 3 }]);
  assert.equal((await fourth.call("GET", "/health")).body.status, "ok");
});
