/** What an engine can have seen of a request that got no answer: nothing without a connection, all of it with one, kept or fresh. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { AlidadeError } from "../../../base/errors.ts";
import { EngineClient } from "../../../engines/http/engine-client.ts";
import { LostAnswer } from "../../../engines/http/refusal.ts";
import { type SampledNothing, sampledNothing } from "../../../engines/http/sampled-nothing.ts";
import { sglangSampledNothing } from "../../../engines/sglang/sampled-nothing.ts";
import { vllmSampledNothing, wholeSampledNothing } from "../../../engines/vllm/sampled-nothing.ts";
import { quietPort } from "../../quiet-port.ts";

const signal = AbortSignal.timeout(300_000);

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

test("a kept connection that closes without a byte: the engine may have sampled, whatever other calls connect meanwhile", async (t) => {
  const client = await kept(t, [false, true]);
  const [lost, other] = await Promise.allSettled([client.open("/x", {}, signal, "id"), client.open("/x", {}, signal, "id")]);
  const failed = [lost, other].flatMap((one) => (one.status === "rejected" ? [one.reason as unknown] : []));
  assert.equal(failed.length, 1);
  assert.ok(failed[0] instanceof LostAnswer, String(failed[0]));
  assert.equal(failed[0].code, "engine_error");
});

test("a connection that closes without a byte: a question is asked again, and once", async (t) => {
  assert.deepEqual(await (await kept(t, [false, true])).json("POST", "/x", {}, signal), {});
  await assert.rejects((await kept(t, [false, false, true])).json("POST", "/x", {}, signal), { code: "engine_error" });
});

test("a kept connection that the server has closed meanwhile is not used: the request goes out on a new one", async (t) => {
  const server = createServer((_, outgoing) => void outgoing.end("{}"));
  const sockets: Socket[] = [];
  server.on("connection", (socket) => void sockets.push(socket));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const client = new EngineClient({ baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, apiKey: null });
  t.after(async () => {
    await client.close();
    server.close();
  });
  for (let call = 0; call < 20; call++) {
    assert.equal(await (await client.open("/x", {}, signal, "id")).text(), "{}");
    // The close is on its way when the next request is made.
    sockets.at(-1)?.destroy();
    await once(sockets.at(-1) as Socket, "close");
  }
  assert.equal(sockets.length, 20);
});

test("which answers prove that nothing was sampled: a refusal does, a failure of the server or of a gateway does not", () => {
  const own = (code: unknown): string => JSON.stringify({ error: { message: "boom", type: "InternalServerError", param: null, code } });
  const cases: [SampledNothing, number, string, boolean][] = [
    [sampledNothing, 400, "bad", true],
    [sampledNothing, 429, "full", true],
    [sampledNothing, 503, "full", true],
    [sampledNothing, 529, "overloaded", true],
    [sampledNothing, 408, "late", false],
    [sampledNothing, 500, own(500), false],
    [sampledNothing, 502, "<html>", false],
    [sampledNothing, 504, "<html>", false],
    [vllmSampledNothing, 500, own(500), true],
    [vllmSampledNothing, 500, own("500"), false],
    [vllmSampledNothing, 500, "<html>", false],
    [vllmSampledNothing, 502, own(502), false],
    [vllmSampledNothing, 503, "", true],
    [wholeSampledNothing, 500, own(500), false],
    [wholeSampledNothing, 501, own(501), false],
    [wholeSampledNothing, 400, own(400), false],
    [wholeSampledNothing, 400, own(400).replace("null", '"max_tokens"'), true],
    [wholeSampledNothing, 400, own(400).replace("boom", "This model's maximum context length is 8 tokens."), true],
    [wholeSampledNothing, 404, own(404), true],
    [wholeSampledNothing, 503, "", true],
    [sglangSampledNothing, 400, '{"message":"The input is too long"}', true],
    [sglangSampledNothing, 400, '{"message":"invalid stop_regex \'(\': missing )"}', false],
    [sglangSampledNothing, 503, '{"message":"The request queue is full."}', true],
    [sglangSampledNothing, 503, '{"message":"Request running timeout reached."}', false],
    [sglangSampledNothing, 500, own(500), false],
  ];
  for (const [proves, status, text, expected] of cases) assert.equal(proves(status, text), expected, `${status} ${text}`);
});
