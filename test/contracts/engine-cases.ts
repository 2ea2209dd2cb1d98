/** The wires of the engines, scripted, and what the tests of engines ask over them and read from the answers. */
import assert from "node:assert/strict";
import { AlidadeError } from "../../base/errors.ts";
import type { Message } from "../../base/schema/message.ts";
import type { Engine, SampleEvent, SampleRequest } from "../../engines/engine.ts";
import { engineNamed } from "../../engines/registry.ts";
import { anthropicWire } from "../fakes/engines/scripted-anthropic.ts";
import { ScriptedEngine, type ScriptedReply } from "../fakes/engines/scripted-engine.ts";
import { googleWire } from "../fakes/engines/scripted-google.ts";
import { llamaCppWire } from "../fakes/engines/scripted-llama-cpp.ts";
import { sglangWire, sglangWith } from "../fakes/engines/scripted-sglang.ts";
import { ScriptedWire, type Wire } from "../fakes/engines/scripted-wire.ts";

export type Scripted = AsyncDisposable & {
  url: string;
  aborted: number;
  requests: readonly Record<string, unknown>[];
  bodies: readonly string[];
};
export type Case = {
  start: (script: (request: Record<string, unknown>) => ScriptedReply) => Promise<Scripted>;
  /** Gives ids and logprobs. */
  tokens: boolean;
  /** `prompt_ids` are taken. */
  tokenIn?: boolean;
  /** The turn comes piece by piece. */
  streams: boolean;
  /** How this server says that a prompt is too long. */
  overflow: string;
  /** The same server, where it tells which experts the tokens took. `root`: the folder of its model. */
  startRouted?: (root: string, script: (request: Record<string, unknown>) => ScriptedReply) => Promise<Scripted>;
};

const on = (wire: Wire) => (script: (request: Record<string, unknown>) => ScriptedReply) => ScriptedWire.start(wire, script);
const vllmOverflow = "This model's maximum context length is 10 tokens. However, you requested 20 tokens";

export const cases: Record<string, Case> = {
  vllm: {
    start: ScriptedEngine.start,
    tokens: true,
    tokenIn: true,
    streams: true,
    overflow: vllmOverflow,
    async startRouted(root, script) {
      const engine = await ScriptedEngine.start(script);
      return Object.assign(engine, { root, routing: "told" as const });
    },
  },
  sglang: {
    start: on(sglangWire),
    tokens: true,
    tokenIn: true,
    streams: false,
    overflow: "The input (20 tokens) is longer than the model's context length (10 tokens).",
    startRouted: (model_path, script) => ScriptedWire.start(sglangWith({ told: "as asked", model_path }), script),
  },
  "llama-cpp": {
    start: on(llamaCppWire),
    tokens: true,
    streams: false,
    overflow: "the request exceeds the available context size, try increasing it",
  },
  openai: { start: ScriptedEngine.start, tokens: false, streams: true, overflow: vllmOverflow },
  "openai-compatible": { start: ScriptedEngine.start, tokens: false, streams: true, overflow: vllmOverflow },
  anthropic: { start: on(anthropicWire), tokens: false, streams: true, overflow: "prompt is too long: 20 tokens > 10 maximum" },
  google: {
    start: on(googleWire),
    tokens: false,
    streams: true,
    overflow: "The input token count (20) exceeds the maximum number of tokens allowed (10).",
  },
};

export const messages: Message[] = [
  { role: "system", parts: [{ type: "text", text: "Be brief." }] },
  { role: "user", parts: [{ type: "text", text: "list the files" }] },
  {
    role: "assistant",
    parts: [
      { type: "text", text: "Looking." },
      { type: "tool_call", id: "callone01", name: "bash", arguments: '{"command":  "ls"}', kind: "function" },
    ],
  },
  {
    role: "tool",
    parts: [{ type: "tool_result", call_id: "callone01", content: [{ type: "text", text: "a.txt" }], is_error: false }],
  },
];

export const request = (fields: Partial<SampleRequest> = {}): SampleRequest => ({
  model: "scripted",
  messages,
  tools: [{ name: "bash", parameters: { type: "object", properties: { command: { type: "string" } } }, kind: "function" }],
  tool_choice: null,
  sampling: { temperature: 1, max_tokens: 100 },
  call_id: "call1",
  ...fields,
});

/** Far longer than any of this takes; a hang is a failure of the test and not of the machine. */
export const patience = () => AbortSignal.timeout(20_000);

export async function withEngine(
  kind: string,
  script: ScriptedReply | ((request: Record<string, unknown>) => ScriptedReply),
  body: (engine: Engine, server: Scripted) => Promise<void>,
  start: Case["start"] = cases[kind]!.start,
): Promise<void> {
  await using server = await start(typeof script === "function" ? script : () => script);
  const engine = engineNamed(kind).create({ baseUrl: server.url, apiKey: "key" });
  try {
    await body(engine, server);
  } finally {
    await engine.close();
  }
}

export const sampleAll = (engine: Engine, fields: Partial<SampleRequest> = {}): Promise<SampleEvent[]> =>
  Array.fromAsync(engine.sample(request(fields), patience()));

export function endOf(events: SampleEvent[]): Extract<SampleEvent, { type: "end" }> {
  const end = events.at(-1);
  assert.ok(end?.type === "end", "the last event is the end");
  return end;
}

export function tokensOf(events: SampleEvent[]): { ids: number[]; logprobs: (number | null)[] } {
  const tokens = events.filter((event) => event.type === "tokens");
  return { ids: tokens.flatMap((event) => [...event.token_ids]), logprobs: tokens.flatMap((event) => [...event.logprobs]) };
}

export const textOf = (events: SampleEvent[], type: "text-delta" | "reasoning-delta"): string =>
  events.map((event) => (event.type === type ? event.text : "")).join("");

export async function failureOf(promise: Promise<unknown>): Promise<AlidadeError> {
  const error = await promise.then(
    () => assert.fail("it did not fail"),
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof AlidadeError, String(error));
  return error;
}
