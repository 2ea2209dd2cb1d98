/** What is read from the record instead of from an answer: it arrived all the same. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { carrierOf } from "../../../proxy/dialects/carrier.ts";
import { itemId } from "../../../proxy/dialects/openai-responses/item-id.ts";
import { until } from "../../fakes/machine/until.ts";
import { type Client, type ProxyAt, proxyAt } from "../../fakes/proxies/proxy-at.ts";

/** Asks, leaves as soon as the engine has it, and waits until the answer is on the record. */
async function abandon(at: ProxyAt, client: Client, body: object, answer: () => void): Promise<void> {
  const leave = new AbortController();
  const asked = client.post("/v1/responses", body, leave.signal).catch(() => null);
  await until(() => at.engine.requests.length > 0);
  leave.abort();
  await asked;
  await client.logged("answered");
  answer();
  await client.logged("call_finished");
  await client.settled();
}

const get = (at: ProxyAt, client: Client, path: string) =>
  fetch(at.proxy.url + path, { headers: { authorization: `Bearer ${client.key}` } });

async function callId(client: Client): Promise<string> {
  const begun = (await client.entries()).find((entry) => entry.type === "call_begun");
  return begun?.call_id ?? assert.fail("no call was begun");
}

const reads: Record<string, (client: Client, conversation: string) => Promise<string> | string> = {
  "a response by its id": async (client) => `/v1/responses/resp_${await callId(client)}`,
  "the items of its conversation": (_client, conversation) => `/v1/conversations/${conversation}/items`,
};

for (const [name, pathOf] of Object.entries(reads))
  test(`an answer whose client left, and that is then read as ${name}, was delivered`, async () => {
    const hold = Promise.withResolvers<void>();
    await using at = await proxyAt(() => ({ text: "Hidden thought.", beforeEnd: hold.promise }));
    const client = await at.open({ purpose: "train", sandboxed: true });
    const { id } = (await (await client.post("/v1/conversations", {})).json()) as { id: string };
    await abandon(at, client, { model: "m", conversation: id, input: "Think" }, hold.resolve);
    assert.equal((await client.trajectory()).calls[0]?.outcome, "undelivered");
    const response = await get(at, client, await pathOf(client, id));
    assert.match(await response.text(), /Hidden thought/);
    const { calls, nodes } = await client.trajectory();
    assert.equal(calls[0]?.outcome, "delivered");
    const sampled = nodes.filter(({ kind }) => kind === "sampled");
    assert.deepEqual(
      sampled.map(({ reason }) => reason),
      [null],
    );
    assert.deepEqual(at.unseen, []);
  });

test("what a request names of an answer whose client left arrived there", async () => {
  for (const item of [
    (callId: string) => ({ type: "item_reference", id: itemId("msg", callId, 0) }),
    (callId: string) => ({ type: "compaction", encrypted_content: carrierOf(callId) }),
  ]) {
    const hold = Promise.withResolvers<void>();
    await using at = await proxyAt(() => ({ text: "Hidden thought.", beforeEnd: hold.promise }));
    const client = await at.open({ purpose: "train", sandboxed: true });
    await abandon(at, client, { model: "m", input: "Think" }, hold.resolve);
    const named = item(await callId(client));
    const input = [{ role: "user", content: "Go on from this:" }, named, { role: "user", content: "Now?" }];
    assert.equal((await client.post("/v1/responses", { model: "m", input })).status, 200);
    assert.equal((await client.trajectory()).calls[0]?.outcome, "delivered");
    const twice = await client.post("/v1/responses", { model: "m", input: [named, named] });
    assert.equal(twice.status, 400);
    assert.match(await twice.text(), /for the second time/);
  }
});

test("what a sandbox reads from the record is counted like what it brings, so reading it again and again is a 429", async () => {
  await using at = await proxyAt(() => ({ text: "ok" }), { bounds: { new_bytes: 512 * 1024, new_bytes_per_second: 16 * 1024 } });
  const items = [{ role: "user", content: "z".repeat(300 * 1024) }];
  const statuses = async (spec: { sandboxed: boolean }) => {
    const client = await at.open(spec);
    const { id } = (await (await client.post("/v1/conversations", { items })).json()) as { id: string };
    const answers = await Promise.all(Array.from({ length: 12 }, () => get(at, client, `/v1/conversations/${id}/items`)));
    for (const answer of answers) if (answer.status === 429) assert.ok(Number(answer.headers.get("retry-after")) > 0);
    await Promise.all(answers.map((answer) => answer.text()));
    return new Set(answers.map(({ status }) => status));
  };
  assert.deepEqual(await statuses({ sandboxed: true }), new Set([200, 429]));
  assert.deepEqual(await statuses({ sandboxed: false }), new Set([200]));
});

test("a conversation that is larger than what may come at once is opened all the same", async () => {
  await using at = await proxyAt(() => ({ text: "ok" }), { bounds: { new_bytes_per_second: 64 * 1024 } });
  const client = await at.open({ sandboxed: true });
  const items = [{ role: "user", content: "z".repeat(1024 * 1024) }];
  assert.equal((await client.post("/v1/conversations", { items })).status, 200);
});
