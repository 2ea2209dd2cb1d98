/** A session's client is answered in the dialects of its harness, and in no other. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { harnesses } from "../../../harnesses/registry.ts";
import { dialects } from "../../../proxy/dialects/registry.ts";
import { proxyAt } from "../../fakes/proxies/proxy-at.ts";

const user = [{ role: "user", content: "work" }];
/** A request of each dialect that is answered where the dialect is spoken. */
const requests: Record<string, [string, Record<string, unknown>]> = {
  "openai-chat": ["/v1/chat/completions", { messages: user }],
  "openai-responses": ["/v1/responses", { input: user }],
  "anthropic-messages": ["/v1/messages", { messages: user, max_tokens: 9 }],
  "google-generate-content": ["/v1beta/models/m:generateContent", { contents: [{ parts: [{ text: "work" }] }] }],
  "openai-completions": ["/v1/completions", { prompt: "work" }],
};

test("a command in the sandbox of a harness gets no answer in another dialect, and the try is on the record", async () => {
  await using at = await proxyAt(() => ({ text: "an answer" }));
  for (const { name, dialects: spoken } of harnesses) {
    const client = await at.open({ sandboxed: true, purpose: "train", dialects: spoken && [...spoken] });
    for (const dialect of dialects) {
      const [path, body] = requests[dialect.name] ?? assert.fail(`no request of ${dialect.name}`);
      const response = await client.post(path, { model: "m", ...body });
      assert.equal(
        response.status,
        spoken?.includes(dialect.name) ? 200 : 404,
        `${name} asks in ${dialect.name}: ${await response.text()}`,
      );
    }
    const entries = await client.entries();
    assert.deepEqual(
      entries.flatMap((entry) => (entry.type === "call_begun" ? [entry.dialect] : [])),
      spoken,
    );
    const refused = entries.flatMap((entry) => (entry.type === "refused" ? [entry] : []));
    assert.equal(refused.length, dialects.length - 1);
    assert.match(refused[0]?.error.message ?? "", /^POST \S+ belongs to \S+: this session is answered in \S+ only/);
  }
  assert.deepEqual(at.unseen, []);
});

test("the refusal comes in the shape of the dialect that was asked in", async () => {
  await using at = await proxyAt(() => ({ text: "an answer" }));
  const client = await at.open({ sandboxed: true, dialects: ["openai-chat"] });
  const anthropic = await client.post("/v1/messages", { model: "m", max_tokens: 9, messages: user });
  assert.equal(((await anthropic.json()) as { error: { type: string } }).error.type, "not_found_error");
  const google = await client.post("/v1beta/models/m:generateContent", { contents: [] });
  assert.equal(((await google.json()) as { error: { status: string } }).error.status, "NOT_FOUND");
});

test("what is no call in another dialect is not answered either: tokens are not counted, conversations not kept", async () => {
  await using at = await proxyAt(() => ({ text: "an answer" }));
  const client = await at.open({ sandboxed: true, dialects: ["openai-chat"] });
  for (const path of ["/v1/messages/count_tokens", "/v1/conversations"])
    assert.equal((await client.post(path, { model: "m", messages: user })).status, 404, path);
  assert.equal(at.proxy.session(client.sessionId).state.conversations.size, 0);
});

test("what is served is told to every client: the harness of any dialect may ask for the models", async () => {
  await using at = await proxyAt(() => ({ text: "an answer" }));
  const { proxy, key } = await at.open({ sandboxed: true, dialects: ["google-generate-content"] });
  assert.equal((await fetch(`${proxy.url}/v1/models`, { headers: { authorization: `Bearer ${key}` } })).status, 200);
});

test("a session that names no dialects is answered in all of them", async () => {
  await using at = await proxyAt(() => ({ text: "an answer" }));
  const client = await at.open({ sandboxed: true });
  for (const [path, body] of Object.values(requests)) assert.equal((await client.post(path, { model: "m", ...body })).status, 200, path);
});
