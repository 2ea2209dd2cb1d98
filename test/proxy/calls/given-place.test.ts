import assert from "node:assert/strict";
import { test } from "node:test";
import { type Client, proxyAt } from "../../fakes/proxies/proxy-at.ts";

const messages = [{ role: "user", content: "hi" }];
const chat = "/v1/chat/completions";

function ask(client: Client, headers: Record<string, string>, more: object = {}): Promise<Response> {
  return client.post(chat, { model: "m", messages, ...more }, undefined, headers);
}

test("calls with ids of their own in headers or metadata are sessions of these ids, and one rollout is one session", async () => {
  await using at = await proxyAt(() => ({ text: "ok" }));
  const client = await at.open();
  const ids = { "x-alidade-task": "t", "x-alidade-group": "g", "x-alidade-sample": "0", "x-alidade-rollout": "r0" };
  await Promise.all([ask(client, { ...ids, "x-alidade-label-split": "dev" }), ask(client, ids)]);
  await ask(client, {}, { metadata: { alidade_task: "t", "alidade-group": "g", "x-alidade-sample": 0, alidade_rollout: "r0" } });
  await ask(client, { "x-alidade-rollout": "r1", "x-alidade-task": "t" }, { metadata: { alidade_rollout: "another", topic: "x" } });
  await ask(client, { "x-alidade-label-turn": "7" });
  const sessions = await Promise.all(at.proxy.sessions.all().map(({ id }) => at.proxy.trajectory(id)));
  assert.deepEqual(
    sessions.map(({ rollout_id, task, group, labels, calls }) => [rollout_id, task.id, group.id, group.sample_index, labels, calls.length]),
    [
      [null, null, null, null, { turn: "7" }, 1],
      ["r0", "t", "g", 0, { split: "dev" }, 3],
      ["r1", "t", null, null, {}, 1],
    ],
  );
  assert.deepEqual(at.unseen, []);
});

test("a rollout's session is found by the rollout's id, for its reward too", async () => {
  await using at = await proxyAt(() => ({ text: "ok" }));
  const client = await at.open();
  await ask(client, { "x-alidade-rollout": "r0" });
  assert.equal(at.proxy.session("r0").spec.rollout_id, "r0");
  await at.proxy.reward("r0", 1, {});
  assert.equal((await at.proxy.trajectory("r0")).reward, 1);
  await assert.rejects(at.proxy.reward("r9", 1, {}), { code: "not_found" });
  await at.proxy.sessions.close(at.proxy.session("r0"), "over");
  await ask(client, { "x-alidade-rollout": "r0" });
  assert.equal(at.proxy.session("r0").spec.attempt, 2, "after its end the rollout is attempted again");
});

test("a restarted proxy goes on with the sessions of the ids", async () => {
  await using at = await proxyAt(() => ({ text: "ok" }));
  const client = await at.open();
  await ask(client, { "x-alidade-rollout": "r0" });
  const { id } = at.proxy.session("r0");
  await using later = await proxyAt(() => ({ text: "ok" }), { store: at.proxy.sessions.store, rebuild: true });
  const headers = { authorization: `Bearer ${client.key}`, "content-type": "application/json", "x-alidade-rollout": "r0" };
  await fetch(later.proxy.url + chat, { method: "POST", headers, body: JSON.stringify({ model: "m", messages }) });
  assert.deepEqual([later.proxy.session("r0").id, later.proxy.session("r0").callCount], [id, 2]);
});

test("a name or value that cannot be is refused in one sentence; a sandboxed session's client is not asked", async () => {
  await using at = await proxyAt(() => ({ text: "ok" }));
  const client = await at.open();
  for (const [headers, body, message] of [
    [{ "x-alidade-tsak": "t" }, {}, /x-alidade-tsak is "t": .*did you mean task\?\)/],
    [{ "x-alidade-sample": "two" }, {}, /x-alidade-sample is "two": give a whole number from 0/],
    [{ "x-alidade-rollout": "r".repeat(201) }, {}, /give 1 to 200 characters/],
    [{}, { metadata: { alidade_task: { id: 1 } } }, /metadata\.alidade_task is \{"id":1\}: give a text or a number/],
    [{ "x-alidade-label-__proto__": "x" }, {}, /there are task, group/],
  ] as const) {
    const answer = await ask(client, headers, body);
    const { error } = (await answer.json()) as { error: { message: string } };
    assert.deepEqual([answer.status, message.test(error.message)], [400, true], error.message);
  }
  const agent = await at.open({ sandboxed: true, purpose: "train" });
  assert.equal((await ask(agent, { "x-alidade-rollout": "mine", "x-alidade-tsak": "t" })).status, 200);
  assert.equal(at.proxy.sessions.all().length, 2);
});
