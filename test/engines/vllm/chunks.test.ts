import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { AlidadeError } from "../../../base/errors.ts";
import type { SampleEvent } from "../../../engines/engine.ts";
import { ChunkReader } from "../../../engines/vllm/chunks.ts";
import { readTokenChunk } from "../../../engines/vllm/token-chunk.ts";

const choice = (fields: Record<string, unknown>) => JSON.stringify({ model: "m", choices: [{ index: 0, ...fields }] });
const token = (id: number, logprob: number | null, delta: unknown = {}) =>
  choice({ delta, token_ids: [id], logprobs: { content: [{ logprob }] } });

function readAll(...chunks: string[]): SampleEvent[] {
  const reader = new ChunkReader("http://engine");
  const events: SampleEvent[] = [];
  for (const chunk of chunks) reader.read(Buffer.from(chunk), events);
  return events;
}

/** What the whole turn of these chunks said, in order. */
function readTurn(...chunks: string[]): unknown[] {
  const reader = new ChunkReader("http://engine");
  const events: SampleEvent[] = [];
  for (const chunk of [...chunks, choice({ delta: {}, finish_reason: "stop" })]) reader.read(Buffer.from(chunk), events);
  return [...events, ...reader.end()].flatMap((event): unknown[] => {
    if (event.type === "tool-call") return [{ [`${event.id} ${event.name}`]: event.arguments }];
    return event.type === "text-delta" || event.type === "reasoning-delta" ? [event.text] : [];
  });
}

const promptOf = (events: SampleEvent[]) => events.find((event) => event.type === "prompt")?.token_ids;

test("prompt ids are read in every form of JSON, and only where they are a field of the chunk or its choice", () => {
  const compact = '{"model":"m","prompt_token_ids":[1,22,333],"choices":[]}';
  assert.deepEqual(promptOf(readAll(compact)), [1, 22, 333]);
  assert.deepEqual(promptOf(readAll(compact.replace(/([,:])/g, "$1 "))), [1, 22, 333]);
  assert.deepEqual(promptOf(readAll(choice({ prompt_token_ids: [4, 5] }))), [4, 5]);
  assert.equal(promptOf(readAll('{"prompt_token_ids":[],"choices":[]}', '{"prompt_token_ids":null,"choices":[]}')), undefined);
  // A model that writes about it: the quotation mark is escaped there.
  const [text] = readAll(choice({ delta: { content: '{"prompt_token_ids":[1,2],"x":[3]}' } }));
  assert.deepEqual(text, { type: "text-delta", text: '{"prompt_token_ids":[1,2],"x":[3]}' });
});

test("logprobs are the same however a chunk is written, whatever its tokens say", () => {
  const entry = fc.record({
    token: fc.string({ unit: "binary" }).map((text) => text.toWellFormed()),
    logprob: fc.oneof(fc.double({ max: 0, min: -50, noNaN: true }), fc.constant(null), fc.constant(-9999)),
    bytes: fc.option(fc.array(fc.nat({ max: 255 }), { maxLength: 3 })),
    top_logprobs: fc.constant([]),
  });
  fc.assert(
    fc.property(fc.array(entry, { minLength: 1, maxLength: 5 }), fc.string(), (content, text) => {
      const chunk = {
        model: "m",
        choices: [{ index: 0, delta: { content: text }, logprobs: { content }, token_ids: content.map((_, at) => at) }],
      };
      const [tokens] = readAll(JSON.stringify(chunk)).filter((event) => event.type === "tokens");
      assert.deepEqual(
        tokens?.logprobs,
        content.map(({ logprob }) => (logprob === null || logprob < -9000 ? null : JSON.parse(JSON.stringify(logprob)))),
      );
      assert.deepEqual(readAll(JSON.stringify(chunk)), readAll(JSON.stringify(chunk, null, 1)));
    }),
    { numRuns: 300 },
  );
});

/** What a reader makes of the last of these chunks, or the fault that it finds. */
function readLast(first: string, last: string): SampleEvent[] | string {
  const reader = new ChunkReader("http://engine");
  const events: SampleEvent[] = [];
  reader.read(Buffer.from(first), []);
  try {
    reader.read(Buffer.from(last), events);
  } catch (error) {
    return (error as AlidadeError).code;
  }
  try {
    return [...events, ...reader.end()];
  } catch {
    return events;
  }
}

test("a token's chunk says the same read as it stands and parsed, and so does what is nearly one", () => {
  const text = fc.string({ unit: "binary" }).map((one) => one.toWellFormed());
  const delta = fc.oneof(
    fc.record({ content: text }),
    fc.record({ reasoning: text }),
    fc.record({ reasoning_content: text }),
    fc.record({ tool_calls: fc.tuple(fc.record({ index: fc.nat({ max: 2 }), function: fc.record({ arguments: text }) })) }),
    fc.record({ role: fc.constant("assistant"), content: text }),
  );
  const tokenChunk = fc.record({
    delta,
    token: text,
    logprob: fc.oneof(fc.double({ max: 0, min: -50, noNaN: true }), fc.constant(null), fc.constant(-9999)),
    bytes: fc.option(fc.array(fc.nat({ max: 255 }), { maxLength: 3 })),
    id: fc.nat(),
    stop: fc.constantFrom({}, { stop_reason: null }),
    finish: fc.constantFrom(null, null, null, "stop"),
  });
  const edit = fc.record({
    at: fc.nat({ max: 9_999 }),
    cut: fc.nat({ max: 3 }),
    put: fc.constantFrom("", "0", '"', "\\", "}", "]", ",", "-", "e", "\n"),
  });
  const chunkOf = ({ delta, token, logprob, bytes, id, stop, finish }: Record<string, unknown>): string =>
    JSON.stringify({
      id: "chatcmpl-1",
      object: "chat.completion.chunk",
      created: 1,
      model: "a model",
      choices: [
        {
          index: 0,
          delta,
          logprobs: { content: [{ token, logprob, bytes, top_logprobs: [] }] },
          finish_reason: finish,
          ...(stop as object),
          token_ids: [id],
        },
      ],
    });
  let readAsTheyStand = 0;
  fc.assert(
    fc.property(tokenChunk, tokenChunk, fc.option(edit, { freq: 1 }), (before, one, edited) => {
      const whole = chunkOf(one);
      const at = edited && edited.at % whole.length;
      const chunk = at === null || !edited ? whole : whole.slice(0, at) + edited.put + whole.slice(at + edited.cut);
      if (readTokenChunk(chunk)) readAsTheyStand++;
      const asItStands = readLast(chunkOf(before), chunk);
      // White space makes it another text, and the same JSON: in front, and where the logprobs would be cut out.
      assert.deepEqual(asItStands, readLast(chunkOf(before), ` ${chunk}`));
      assert.deepEqual(asItStands, readLast(chunkOf(before), chunk.replace('"logprobs":{', '"logprobs": {')));
    }),
    { numRuns: 2_000 },
  );
  assert.ok(readAsTheyStand > 200, `${readAsTheyStand} chunks were read as they stand`);
});

test("chunks that came together are one event of tokens and one of text", () => {
  const events = readAll(token(1, -0.1, { content: "a" }), token(2, -0.2, { content: "b" }), token(3, -0.3));
  assert.deepEqual(events, [
    { type: "tokens", token_ids: [1, 2, 3], logprobs: [-0.1, -0.2, -0.3] },
    { type: "text-delta", text: "ab" },
  ]);
});

const fragment = (index: number, id: string | undefined, args: string) => ({
  tool_calls: [{ index, id, function: { ...(id && { name: "f" }), arguments: args } }],
});

test("text, reasoning and calls keep their order", () => {
  const said = readTurn(
    token(1, -1, { reasoning: "r" }),
    token(2, -1, { content: "a" }),
    token(3, -1, fragment(0, "id0", "{}")),
    token(4, -1, fragment(1, "id1", "{}")),
    token(5, -1, { content: "b" }),
    token(6, -1, { content: "c" }),
    token(7, -1, fragment(2, "id2", "{}")),
  );
  assert.deepEqual(said, ["r", "a", { "id0 f": "{}" }, { "id1 f": "{}" }, "bc", { "id2 f": "{}" }]);
});

test("a call is one call where text came between its fragments, as some parsers send what they held back", () => {
  const said = readTurn(
    token(1, -1, fragment(0, "id0", '{"a": 1}')),
    token(2, -1, fragment(1, "id1", '{"b": ')),
    token(3, -1, { content: "\n" }),
    token(4, -1, fragment(1, undefined, "2}")),
  );
  assert.deepEqual(said, [{ "id0 f": '{"a": 1}' }, { "id1 f": '{"b": 2}' }, "\n"]);
});

test("a call that is whole is told as soon as text follows it, so that an answer that breaks off there has both", () => {
  const events = readAll(token(1, -1, fragment(0, "id0", '{"a": 1}')), token(2, -1, { content: "b" }));
  assert.deepEqual(
    events.map(({ type }) => type),
    ["tokens", "tool-call", "text-delta"],
  );
});

test("a logprob that was not measured is null: -9999, null, or another number of them than of ids", () => {
  const [tokens] = readAll(token(1, -9999), token(2, null), choice({ token_ids: [3, 4], logprobs: { content: [{ logprob: -1 }] } }));
  assert.deepEqual(tokens, { type: "tokens", token_ids: [1, 2, 3, 4], logprobs: [null, null, null, null] });
});

for (const [field, chunk] of [
  ["token_ids", choice({ token_ids: [1.5] })],
  ["token_ids", choice({ token_ids: [-1] })],
  ["token_ids", choice({ token_ids: ["1"] })],
  ["prompt_token_ids", JSON.stringify({ prompt_token_ids: [1, null], choices: [] })],
  ["content", choice({ delta: { content: 5 } })],
  ["tool_calls", choice({ delta: { tool_calls: [{ id: "x" }] } })],
  ["logprob", choice({ token_ids: [1], logprobs: { content: [{ logprob: "-1" }] } })],
  ["choices", JSON.stringify({ choices: [null] })],
  ["choices", JSON.stringify({ choices: {} })],
] as const)
  test(`a chunk of another shape is an error that names ${field}: ${chunk}`, () => {
    assert.throws(
      () => promptOf(readAll(chunk)),
      (error) => error instanceof AlidadeError && error.code === "engine_error" && error.message.includes(`: ${field}: `),
    );
  });

test("what is no JSON object is an error of the engine", () => {
  for (const data of ["", "{", "[]", "null", "5"])
    assert.throws(
      () => readAll(data),
      (error) => error instanceof AlidadeError && error.code === "engine_error",
    );
});

test("an error chunk is told in the engine's words, and what came before it stays", () => {
  const reader = new ChunkReader("http://engine");
  const events: SampleEvent[] = [];
  reader.read(Buffer.from(token(1, -0.5)), events);
  assert.throws(() => reader.read(Buffer.from('{"error":{"message":"out of memory"}}'), events), /out of memory/);
  assert.deepEqual(events, [{ type: "tokens", token_ids: [1], logprobs: [-0.5] }]);
});

test("a stream that ends without a finish reason broke off", () => {
  assert.throws(() => new ChunkReader("http://engine").end(), /without a finish reason/);
});

test("an error before any chunk is the refusal that it says, one after it is the engine's", () => {
  const error = (code: number, message: string) => JSON.stringify({ error: { message, type: "BadRequestError", param: null, code } });
  const codeOf = (...chunks: string[]): unknown => {
    try {
      return readAll(...chunks);
    } catch (thrown) {
      return thrown instanceof AlidadeError ? [thrown.code, thrown.status] : thrown;
    }
  };
  assert.deepEqual(codeOf(error(400, "Failed to transform regex into a grammar")), ["request_invalid", 400]);
  assert.deepEqual(codeOf(error(500, "boom")), ["engine_error", 502]);
  assert.deepEqual(codeOf(token(1, -1), error(400, "too late")), ["engine_error", 502]);
});
