import assert from "node:assert/strict";
import { test } from "node:test";
import type { RequestClass } from "../../../base/schema/session-spec.ts";
import { type Client, proxyAt } from "../../fakes/proxies/proxy-at.ts";

const tool = { name: "Bash", description: "a shell", input_schema: { type: "object" } };
const compactionAsk = "CRITICAL: Respond with TEXT ONLY. Write <analysis> and <summary>.";

/** What Claude Code's calls look like, by their class. */
const asked: [RequestClass, Record<string, unknown>, Record<string, string>][] = [
  ["main", { tools: [tool], messages: [{ role: "user", content: "work" }] }, {}],
  ["sub_agent", { tools: [tool], messages: [{ role: "user", content: "help" }] }, { "x-claude-code-agent-id": "a1b2c3d4e5f6a7b8c" }],
  ["compaction", { tools: [tool], messages: [{ role: "user", content: compactionAsk }] }, {}],
  ["quota", { max_tokens: 1, messages: [{ role: "user", content: "quota" }] }, {}],
  ["title", { system: "You are a title generator.", messages: [{ role: "user", content: "work" }] }, {}],
];

test("the session's word decides which kinds of call are trained, and the others say why they are not", async () => {
  for (const [train_classes, trained] of [
    [undefined, ["main", "sub_agent", "compaction"]],
    [
      ["main", "title"],
      ["main", "title"],
    ],
    [[], []],
  ] as [RequestClass[] | undefined, RequestClass[]][]) {
    await using at = await proxyAt((_, index) => ({ text: `answer ${index}` }));
    const client = await at.open({ purpose: "train", ...(train_classes && { train_classes }) });
    for (const [, body, headers] of asked) assert.equal((await ask(client, body, headers)).status, 200);
    const { calls, nodes, fidelity } = await client.trajectory();
    assert.deepEqual(
      calls.map((call) => call.request_class),
      asked.map(([name]) => name),
    );
    const classOf = new Map(calls.map((call) => [call.call_id, call.request_class]));
    for (const node of nodes.filter((one) => one.kind === "sampled")) {
      const isTrained = trained.includes(classOf.get(node.call_id ?? "") as RequestClass);
      assert.deepEqual([node.trainable, node.reason], isTrained ? [true, null] : [false, "auxiliary"], classOf.get(node.call_id ?? ""));
    }
    assert.equal(fidelity.sampled_tokens, fidelity.trainable_tokens + (fidelity.excluded.auxiliary ?? 0));
  }
});

function ask(client: Client, body: Record<string, unknown>, headers: Record<string, string>): Promise<Response> {
  return fetch(`${client.proxy.url}/v1/messages`, {
    method: "POST",
    headers: { "x-api-key": client.key, "content-type": "application/json", ...headers },
    body: JSON.stringify({ model: "m", max_tokens: 100, ...body }),
  });
}
