/** What of a record becomes a span. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { SessionSpec } from "../../../base/schema/session-spec.ts";
import type { EndedCall } from "../../../base/schema/watcher.ts";
import { textOfLine } from "../../../service/watch/event-line.ts";
import { attributesOf } from "../../../service/watch/recorded-span.ts";
import { spansOfCall } from "../../../service/watch/spans-of.ts";

test("texts of strangers are cut and whole characters, and hold no key", () => {
  const values = attributesOf({
    long: "x".repeat(1e7),
    half: "a\ud800",
    key: "sk-ali-abcdefghijklmnop",
    none: null,
    list: ["y".repeat(999)],
  });
  assert.deepEqual(values, { long: "x".repeat(256), half: "a\ufffd", key: "[redacted]", list: ["y".repeat(256)] });
});

const call = (spec: Partial<SessionSpec>, session_id: string, call_id: string): EndedCall => ({
  session_id,
  spec: SessionSpec.parse({ rollout_id: "r", ...spec }),
  begun: {
    type: "call_begun",
    time: 1_000,
    call_id,
    ordinal: 0,
    dialect: "openai-completions",
    agent: "main",
    request_class: "main",
    labels: {},
    model: "m",
    stream: false,
    messages: { base_call_id: null, base_len: 0, new: [{ role: "user", parts: [{ type: "text", text: "a prompt" }] }] },
    fingerprint: "",
    restored: [],
    parent_call_id: null,
    retry_of: null,
    tools_hash: null,
    tool_choice: null,
    requested_sampling: {},
    effective_sampling: { temperature: 0.5 },
    policy: null,
    role_mapping: {},
    native: {},
  },
  tries: [1, 2].map((number) => ({
    type: "tried",
    time: 1_000 + 100 * number,
    call_id,
    try: number,
    engine: "http://user:password@engine:8000",
    engine_name: "a",
    policy: { version: "step-7", step: 7 },
    fingerprints: null,
    role_mapping: {},
    started: 1_000 * number,
    first_token: null,
    status: number === 1 ? 503 : 200,
    error: number === 1 ? { code: "engine_error", message: "the words of a server", status: 503 } : null,
  })),
  tools: [{ id: "t1", name: "bash", started: 700, ended: 1_000 }],
  outcome: {
    time: 1_300,
    usage: { prompt_tokens: 3, cached_tokens: null, sampled_tokens: 2, reasoning_tokens: null },
    finish_reason: "stop",
    policy: { version: "step-7", step: 7 },
    engine: "vllm",
    engine_model: null,
    error: null,
  },
});

test("a line of the log holds nothing that acts on a terminal, and is the same JSON", () => {
  const message = "a\u009b2Jb\u202ec\u2028d\u{e0001}e\u001bf";
  const text = textOfLine({ level: "info", event: "note", message });
  assert.match(text, /^[\x20-\x7e]*$/);
  assert.equal(JSON.parse(text).message, message);
});

test("the calls of a rollout are of its trace in every process, and a client's own session has a trace of its own", () => {
  const inRollout = [call({ sandboxed: true }, "ses1", "call1"), call({ sandboxed: true, attempt: 2 }, "ses2", "call2")].map(spansOfCall);
  const [first, second] = inRollout.map((spans) => spans[0]);
  assert.equal(first?.place.trace, second?.place.trace);
  assert.notEqual(first?.parent, second?.parent);
  assert.match(`${first?.place.trace} ${first?.place.span}`, /^[0-9a-f]{32} [0-9a-f]{16}$/);
  assert.deepEqual(spansOfCall(call({ sandboxed: true }, "ses1", "call1"))[0], first, "the same call is the same span");

  const [own] = spansOfCall(call({}, "ses3", "call3"));
  assert.equal(own?.parent, null);
  assert.notEqual(own?.place.trace, first?.place.trace);
});

test("each try is a span below its call with its engine, policy and failure, and without a server's words", () => {
  const spans = spansOfCall(call({ sandboxed: true }, "ses1", "call1"));
  assert.deepEqual(
    spans.map(({ name, parent, error }) => [name, parent, error]),
    [
      ["text_completion m", spans[0]?.parent, null],
      ["try", spans[0]?.place.span, "engine_error"],
      ["try", spans[0]?.place.span, null],
      ["execute_tool bash", spans[0]?.parent, null],
    ],
  );
  assert.deepEqual(spans[1]?.attributes, {
    "alidade.call.id": "call1",
    "alidade.try": 1,
    "alidade.engine": "a",
    "http.response.status_code": 503,
    "server.address": "engine",
    "server.port": 8000,
    "alidade.policy.version": "step-7",
    "alidade.policy.step": 7,
  });
  assert.deepEqual([spans[0]?.attributes["gen_ai.operation.name"], spans[0]?.isClient], ["text_completion", true]);
  assert.deepEqual([spans[3]?.start, spans[3]?.end, spans[3]?.attributes["gen_ai.tool.name"]], [700, 1_000, "bash"]);
  assert.doesNotMatch(JSON.stringify(spans), /a prompt|password|words of a server/);
});
