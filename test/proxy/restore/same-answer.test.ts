/** An answer is a pure function of the record: a second proxy that has the log and nothing else writes the same bytes. */
import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { dialects } from "../../../proxy/dialects/registry.ts";
import { DiskStore } from "../../../proxy/store/index.ts";
import { type DialectRequest, dialectRequest } from "../../fakes/proxies/dialect-requests.ts";
import { proxyAt } from "../../fakes/proxies/proxy-at.ts";

const reply = {
  reasoning: "Grüße – two at once",
  text: 'Both.\n\u{1f600} "quoted"',
  tool_calls: [
    { name: "bash", arguments: '{"command":  "ls"}' },
    { name: "bash", arguments: "not json" },
  ],
};

async function ask(url: string, key: string, { path, body }: DialectRequest): Promise<string> {
  const response = await fetch(`${url}/s/${key}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  assert.equal(response.status, 200, text);
  return text;
}

for (const { name } of dialects)
  for (const stream of [false, true])
    test(`${name}: a ${stream ? "streamed" : "whole"} answer comes from the log byte for byte`, async (t) => {
      const folder = await mkdtemp(join(tmpdir(), "alidade-answer-"));
      t.after(() => rm(folder, { recursive: true, force: true }));
      const request = dialectRequest(name, stream);
      const given = await (async () => {
        await using at = await proxyAt(() => (name === "openai-completions" ? { text: reply.text } : reply), {
          store: new DiskStore(folder),
        });
        const { key, sessionId } = await at.open({ relay: "buffered" });
        return { key, sessionId, text: await ask(at.proxy.url, key, request) };
      })();
      const path = join(folder, `${given.sessionId}.jsonl`);
      const lines = (await readFile(path, "utf8")).split("\n");
      await writeFile(path, lines.filter((line) => !line.includes('"type":"answered"')).join("\n"));
      await using again = await proxyAt(() => ({ text: "another sample" }), { store: new DiskStore(folder), rebuild: true });
      assert.equal(await ask(again.proxy.url, given.key, request), given.text);
      assert.equal(again.engine.requests.length, 0);
    });
