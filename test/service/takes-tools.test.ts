/** A set whose harness takes no servers of tools refuses a task with them when it is submitted, and not when it begins. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { serviceAt, serviceTask } from "../fakes/proxies/service-at.ts";

const environment = { services: { shop: { command: ["serve"] } }, tools: [{ name: "front", service: "shop", port: 8000 }] };
const task = { ...serviceTask, environment };
const refusal = /environment\.tools is front, and Pi takes no servers of tools: use another harness than pi/;

test("a task with tools is refused by name where it is submitted for a harness that takes none", async (t) => {
  const { call } = await serviceAt(t);
  for (const [harness, status] of [
    ["pi", 400],
    [null, 400], // the service's own is Pi here
    ["codex", 200],
  ] as const) {
    const { set_id } = (await call("PUT", `/sets/${harness}`, { samples: 1, harness })).body;
    const groups = await call("POST", `/sets/${set_id}/groups`, JSON.stringify({ group_key: "g", task }));
    const alone = await call("POST", `/sets/${set_id}/rollouts`, { group_key: "h", index: 0, task });
    for (const answer of [groups, alone]) {
      assert.equal(answer.status, status, JSON.stringify(answer.body));
      if (status === 400) assert.match(JSON.stringify(answer.body), refusal);
    }
    assert.equal((await call("POST", `/sets/${set_id}/groups`, JSON.stringify({ group_key: "i", task: serviceTask }))).status, 200);
  }
});

test("Polar's routes name the harness that takes no tools", async (t) => {
  const { call } = await serviceAt(t, { known: task });
  const asked = { task_id: "p", instruction: "-", num_samples: 1, agent: { harness: "pi" }, metadata: { alidade_task: task.task_id } };
  const { status, body } = await call("POST", "/rollout/task/submit", asked);
  assert.equal(status, 400, JSON.stringify(body));
  assert.match(JSON.stringify(body), refusal);
});
