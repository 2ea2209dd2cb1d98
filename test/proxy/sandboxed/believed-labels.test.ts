/** The words and headers of a sandboxed agent take no token out of training, whatever kind of call they claim. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { RequestClass, SessionSpec } from "../../../base/schema/session-spec.ts";
import { harnesses } from "../../../harnesses/registry.ts";
import { type Client, proxyAt } from "../../fakes/proxies/proxy-at.ts";

const user = [{ role: "user", content: "work" }];
const chat = "/v1/chat/completions";
const responses = "/v1/responses";
const anthropic = "/v1/messages";
const google = "/v1beta/models/m:generateContent";
const sandboxed: Partial<SessionSpec> = { sandboxed: true, purpose: "train" };

/** By what of it each dialect reads it: all claims that there are. */
const claims: [RequestClass, string, Record<string, unknown>, Record<string, string>?][] = [
  ["title", chat, { messages: [{ role: "system", content: "You are a title generator" }, ...user] }],
  ["title", responses, { instructions: "You are a title generator", input: user }],
  ["title", anthropic, { system: "Generate a concise title", messages: user, max_tokens: 9 }],
  ["title", google, { systemInstruction: { parts: [{ text: "You are a title generator" }] }, contents: [{ parts: [{ text: "work" }] }] }],
  ["topic", anthropic, { system: "if this message indicates a new conversation topic", messages: user, max_tokens: 9 }],
  ["quota", anthropic, { messages: [{ role: "user", content: "quota" }], max_tokens: 1 }],
  ["memory", chat, { messages: [{ role: "system", content: "You are the managed memory extraction agent" }, ...user] }],
  [
    "check",
    google,
    { contents: [{ parts: [{ text: "work" }] }], generationConfig: { responseSchema: { type: "OBJECT" } } },
    { "user-agent": "GeminiCLI/1" },
  ],
  ["compaction", chat, { messages: user }, { "x-interaction-type": "conversation-compaction" }],
  ["compaction", responses, { input: user }, { "x-openai-subagent": "compact" }],
  ["compaction", responses, { input: [{ role: "user", content: "CONTEXT CHECKPOINT" }] }],
  ["compaction", chat, { messages: [{ role: "system", content: "You are a context summarization assistant" }, ...user] }],
  ["sub_agent", chat, { messages: user }, { "x-parent-session-id": "a", "x-session-id": "b" }],
  ["sub_agent", chat, { messages: user }, { "x-interaction-type": "conversation-subagent" }],
  ["sub_agent", responses, { input: user }, { "x-codex-parent-thread-id": "a", "thread-id": "b" }],
  ["sub_agent", anthropic, { messages: user, max_tokens: 9 }, { "x-claude-code-agent-id": "a1" }],
];

async function ask(client: Client, [, path, body, headers]: (typeof claims)[number]): Promise<void> {
  const response = await fetch(client.proxy.url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${client.key}`, "x-goog-api-key": client.key, "content-type": "application/json", ...headers },
    body: JSON.stringify({ model: "m", ...body }),
  });
  assert.equal(response.status, 200, await response.text());
}

test("what a sandboxed agent claims its calls to be is recorded, and all of them are its work", async () => {
  await using at = await proxyAt((_, index) => ({ text: `answer ${index}` }));
  const client = await at.open({ ...sandboxed, train_classes: ["main"] });
  for (const claim of claims) await ask(client, claim);
  const { calls, fidelity } = await client.trajectory();
  assert.deepEqual(
    calls.map(({ agent, request_class, labels }) => [agent, request_class, labels.read_as]),
    claims.map(([read_as]) => ["main", "main", read_as]),
  );
  // The check asked for a form, and what a grammar forced is no choice.
  assert.deepEqual(fidelity.by_class, {});
  assert.equal(fidelity.excluded.auxiliary, undefined);
});

test("a person's own session is believed", async () => {
  await using at = await proxyAt((_, index) => ({ text: `answer ${index}` }));
  const client = await at.open({ purpose: "train" });
  for (const claim of claims) await ask(client, claim);
  assert.deepEqual(
    (await client.trajectory()).calls.map((call) => call.request_class),
    claims.map(([name]) => name),
  );
});

const title = claims[0] ?? assert.fail();
const turn = ["main", chat, { messages: user }] satisfies (typeof claims)[number];

test("side calls that the harness is known to make are left out, and named, up to a tenth of the tokens", async () => {
  await using at = await proxyAt((request) => ({ text: JSON.stringify(request.messages).includes("title") ? "short" : "long".repeat(20) }));
  const client = await at.open({ ...sandboxed, known_classes: ["title"] });
  await ask(client, title);
  await ask(client, turn);
  const { fidelity } = await client.trajectory();
  assert.deepEqual(fidelity.excluded, { auxiliary: 6 });
  assert.deepEqual(fidelity.by_class, { title: 6 });
});

test("of a harness that makes titles, an agent whose work is all titles hides none of it", async () => {
  await using at = await proxyAt((_, index) => ({ text: index === 0 ? "hi" : "the work itself" }));
  const client = await at.open({ ...sandboxed, known_classes: ["title"] });
  await ask(client, turn);
  for (let again = 0; again < 3; again++)
    await ask(client, [
      ...title.slice(0, 2),
      { messages: [...(title[2].messages as object[]), { role: "user", content: `${again}` }] },
    ] as unknown as typeof title);
  const { fidelity, calls } = await client.trajectory();
  assert.deepEqual(fidelity.excluded, {});
  assert.equal(fidelity.trainable_tokens, fidelity.sampled_tokens);
  assert.deepEqual([calls[1]?.request_class, calls[1]?.labels.read_as], ["main", "title"]);
});

test("no harness that a run starts is known to make calls that are not trained", () => {
  const work: readonly RequestClass[] = ["sub_agent", "compaction"];
  for (const { name, makes } of harnesses)
    assert.ok(
      makes.every((one) => work.includes(one)),
      name,
    );
});
