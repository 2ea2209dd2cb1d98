/** A plain conversation through the proxy into a run folder on disk: nothing forced, so that any token can come. */
import { join } from "node:path";
import { engineNamed } from "../../../engines/registry.ts";
import { HarnessProxy } from "../../../proxy/index.ts";
import { DiskStore } from "../../../proxy/store/index.ts";
import { Client } from "../proxies/proxy-at.ts";

/** `turns` questions and answers, each of at most 16 tokens. Resolves when all of it is on disk. */
export async function recordChat(engineUrl: string, folder: string, turns: number): Promise<void> {
  const engine = engineNamed("vllm").create({ baseUrl: engineUrl, apiKey: null });
  try {
    await using proxy = await HarnessProxy.start({ engine, store: new DiskStore(join(folder, "sessions")), version: "test" });
    const { session, key } = await proxy.openSession({ any_model: true, purpose: "train" });
    const client = new Client(proxy, session.id, key);
    const messages: unknown[] = [{ role: "system", content: "You are terse." }];
    for (let turn = 0; turn < turns; turn++) {
      messages.push({ role: "user", content: `Question ${turn}: what is naïve in 日本?` });
      messages.push(await client.say(messages, { max_tokens: 16 }));
    }
    await client.settled();
  } finally {
    await engine.close();
  }
}
