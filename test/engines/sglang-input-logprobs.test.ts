/** Checks SGLang's logprobs of a prompt, in the form of its source (0.5): one entry for each token, and none before the first. */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { engines } from "../../engines/registry.ts";

test("SGLang is asked for its likeliest tokens of a prompt, and a place whose token it names otherwise has none", async (t) => {
  const asked: unknown[] = [];
  const server = createServer(async (request, response) => {
    asked.push(JSON.parse(Buffer.concat(await Array.fromAsync(request as AsyncIterable<Buffer>)).toString("utf8")));
    const meta_info = {
      input_token_logprobs: [
        [null, 8, null],
        [-3, 7, null],
        [-0.5, 9, null],
        [-0.1, 4, null],
      ],
      input_top_logprobs: [
        null,
        [
          [-0.5, 4, null],
          [-2, 5, null],
        ],
        [
          [-0.5, 9, null],
          [-1, 2, null],
        ],
        [[-0.1, 4, null]],
      ],
    };
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ text: "", meta_info }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const engine = engines.find(({ name }) => name === "sglang")?.create({ baseUrl: url, apiKey: null });
  assert.ok(engine?.scoreTop && engine.score);
  t.after(async () => {
    await engine.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const none = { ids: [], logprobs: [] };
  assert.deepEqual(await engine.scoreTop("m", [8, 7, 9, 6], 2, t.signal), [
    { logprob: null, top: none },
    { logprob: -3, top: { ids: [4, 5], logprobs: [-0.5, -2] } },
    { logprob: -0.5, top: { ids: [9, 2], logprobs: [-0.5, -1] } },
    { logprob: null, top: none },
  ]);
  assert.deepEqual(await engine.score("m", [8, 7, 9, 6], t.signal), [null, -3, -0.5, null]);
  const body = {
    input_ids: [8, 7, 9, 6],
    sampling_params: { max_new_tokens: 1, temperature: 0 },
    return_logprob: true,
    logprob_start_len: 0,
  };
  assert.deepEqual(asked, [{ ...body, top_logprobs_num: 2 }, body]);
});
