/** What an engine can have seen of a request that got no answer: on a kept connection nothing, on a fresh one all of it. */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { EngineClient } from "../../engines/engine-client.ts";
import { AlidadeError } from "../../errors.ts";

const signal = AbortSignal.timeout(20_000);

/** A server that answers the n-th request, or closes its connection without a byte. */
async function serverThat(t: TestContext, answers: boolean[]): Promise<EngineClient> {
  const server = createServer(async (incoming, outgoing) => {
    await incoming.toArray();
    if (answers.shift()) outgoing.end("{}");
    else outgoing.destroy();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const client = new EngineClient({ baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, apiKey: null });
  t.after(async () => {
    await client.close();
    server.close();
  });
  return client;
}

const ways: Record<string, (client: EngineClient) => Promise<unknown>> = {
  "a whole answer": (client) => client.json("POST", "/x", {}, signal),
  "an answer as it comes": async (client) => (await client.open("/x", {}, signal, "id")).text(),
};

for (const [way, ask] of Object.entries(ways)) {
  const failureOf = async (client: EngineClient): Promise<string> => {
    const error = await ask(client).then(
      () => assert.fail("it was answered"),
      (thrown: unknown) => thrown,
    );
    assert.ok(error instanceof AlidadeError, String(error));
    return error.code;
  };

  test(`${way}: a fresh connection that closes without a byte is an error of the engine, which may have seen the request`, async (t) => {
    assert.equal(await failureOf(await serverThat(t, [false])), "engine_error");
  });

  test(`${way}: a kept connection that closes without a byte is an engine that was not reached`, async (t) => {
    const client = await serverThat(t, [true, false, false]);
    await ask(client);
    // It can be used again when the end of the answer has been seen by those who keep it, too.
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(await failureOf(client), "engine_unreachable");
    // The one after it goes out on a fresh connection.
    assert.equal(await failureOf(client), "engine_error");
  });
}
