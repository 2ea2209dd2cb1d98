/** Tokens that an agent itself takes out of training are counted, whatever way it takes. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { untrainedByAgent } from "../../../reconstruct/index.ts";
import { FidelitySummarizer } from "../../../view/fidelity/summary.ts";
import { until } from "../../fakes/machine/until.ts";
import { proxyAt } from "../../fakes/proxies/proxy-at.ts";

const image = { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0KGgo=" } };

test("what was sampled after an image, and answers that were not read, count as untrained by the agent and alarm", async () => {
  const { promise: hungUp, resolve: hangUp } = Promise.withResolvers<void>();
  await using at = await proxyAt((_, index) => ({
    text: ["twelve chars", "six ch", "unread"][index] ?? "",
    ...(index === 2 && { beforeEnd: hungUp }),
  }));
  const client = await at.open({ purpose: "train", task_id: "t" });
  await client.say([{ role: "user", content: "hi" }]);
  await client.say([{ role: "user", content: [image] }]);
  const thrice = async (type: string) => (await client.entries()).filter((entry) => entry.type === type).length === 3;
  const away = new AbortController();
  const left = client.chat({ messages: [{ role: "user", content: "and now?" }] }, away.signal);
  await until(() => at.engine.requests.length === 3);
  away.abort();
  await assert.rejects(left);
  await until(() => thrice("answered"));
  hangUp();
  await until(() => thrice("call_finished"));
  const trajectory = await client.trajectory();
  const [said, seen, unread] = trajectory.calls.map(({ sampled_length }) => sampled_length);
  assert.deepEqual(untrainedByAgent(trajectory), { undelivered: unread, images: seen });
  const summarizer = new FidelitySummarizer({});
  summarizer.add(trajectory);
  const { ends } = summarizer.summary;
  assert.deepEqual([ends.sampled_tokens, ends.alarms.length], [(said ?? 0) + (seen ?? 0) + (unread ?? 0), 1]);
  assert.match(ends.alarms[0] ?? "", /^task t: .* sampled tokens are not trained \(\d+ undelivered, \d+ images\)/);
});
