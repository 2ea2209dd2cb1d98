/** What an engine can have seen of a request that got no answer: on a kept connection nothing, on a fresh one all of it. */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { EngineClient } from "../../../engines/http/engine-client.ts";
import { AlidadeError } from "../../../errors.ts";
import { quietPort } from "../../quiet-port.ts";

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

  test(`${way}: an engine that is not there was not reached`, async (t) => {
    const gone = new EngineClient({ baseUrl: `http://127.0.0.1:${await quietPort()}`, apiKey: null });
    t.after(() => gone.close());
    assert.equal(await failureOf(gone), "engine_unreachable");
  });
}

/** One that has answered once, over a connection that can be used again. */
async function kept(t: TestContext, answers: boolean[]): Promise<EngineClient> {
  const client = await serverThat(t, [true, ...answers]);
  await client.json("POST", "/x", {}, signal);
  // It can be when the end of the answer has been seen by those who keep it, too.
  await new Promise((resolve) => setImmediate(resolve));
  return client;
}

test("a kept connection that closes without a byte: the engine was not reached by what it would sample, and the caller is told", async (t) => {
  const client = await kept(t, [false, false]);
  const codes = [];
  for (let call = 0; call < 2; call++) codes.push(await client.open("/x", {}, signal, "id").catch((error: AlidadeError) => error.code));
  assert.deepEqual(codes, ["engine_unreachable", "engine_error"], "the one after it goes out on a fresh connection");
});

test("a kept connection that closes without a byte: a question is asked again on a fresh one, and once there", async (t) => {
  assert.deepEqual(await (await kept(t, [false, true])).json("POST", "/x", {}, signal), {});
  await assert.rejects((await kept(t, [false, false, true])).json("POST", "/x", {}, signal), { code: "engine_error" });
});
