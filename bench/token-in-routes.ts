/**
 * Which of vLLM's routes for token ids reads an answer as our chat route does, for the very same sampled ids?
 *
 *     node bench/token-in-routes.ts --engine URL     a vLLM with --enable-scale-out and a tool parser, by itself
 *
 * The turns of the tests (said well and badly, whole and cut off) are forced on the model, and free ones are sampled;
 * then each route is asked what it makes of the ids. Chat is asked twice, for its parser depends on where chunks fall.
 */
import { parseArgs } from "node:util";
import type { Message, Sampling } from "../base/schema/message.ts";
import { IdText } from "../base/tokens/id-text.ts";
import type { Engine } from "../engines/engine.ts";
import { engineNamed } from "../engines/registry.ts";
import { bashTool, forcedTurns, neutral, type ReadTurn, read } from "../test/e2e/vllm-samples.ts";
import { surroundings } from "./measure.ts";

type Words = { text: string; reasoning: string; calls: [name: string, args: string][] };
type Choice = {
  message?: Record<string, unknown>;
  delta?: Record<string, unknown>;
};

const { values } = parseArgs({ options: { engine: { type: "string" }, free: { type: "string", default: "40" } } });
if (!values.engine) throw new Error("--engine is the URL of a vLLM");
const baseUrl = values.engine.replace(/\/+$/, "");

const messages: Message[] = [{ role: "user", parts: [{ type: "text", text: "Please work through the steps." }] }];
const wire = {
  messages: [{ role: "user", content: "Please work through the steps." }],
  tools: [{ type: "function", function: { name: bashTool.name, parameters: bashTool.parameters } }],
};

const cases: Sampling[] = [
  ...Object.values(forcedTurns).flatMap((text) =>
    [200, 4, 9, 17].map((max_tokens) => ({ structured_outputs: { choice: [text] }, max_tokens })),
  ),
  ...["one STOP two", '<tool_call>\n{"name": "bash", "arguments": {"command": "STOP"}}\n</tool_call>'].map((text) => ({
    structured_outputs: { choice: [text] },
    stop: ["STOP"],
    max_tokens: 50,
  })),
  ...Array.from({ length: Number(values.free) }, () => ({ max_tokens: 200 })),
];

const routes = ["chat, asked again", "chat with ids", "chat without stream", "derender, whole", "derender, as one chunk"] as const;
const same: Record<(typeof routes)[number], number> = Object.fromEntries(routes.map((route) => [route, 0])) as never;
const engine = engineNamed("vllm").create({ baseUrl, apiKey: null });
const signal = new AbortController().signal;
const { models } = await engine.probe(signal);
const model = models[0] ?? "";
let count = 0;
for (const [seed, sampling] of cases.entries()) await compare({ ...neutral, ...sampling, seed });
await engine.close();
console.log(`${JSON.stringify(surroundings())}\n\n| route | says what our chat route says |\n| --- | --- |`);
for (const route of routes) console.log(`| ${route} | ${same[route]} of ${count} |`);

async function compare(sampling: Sampling): Promise<void> {
  const chat = await sample(engine, sampling);
  const says = (route: (typeof routes)[number], words: Words | null) => {
    if (words && JSON.stringify(words) === JSON.stringify(wordsOf(chat))) same[route]++;
  };
  count++;
  says("chat, asked again", wordsOf(await sample(engine, sampling)));
  says("chat with ids", wordsOf(await sample(engine, sampling, chat.prompt)));
  const asked = { model, ...wire, tool_choice: "auto", ...sampling };
  says("chat without stream", await words("/v1/chat/completions", asked));
  const choice = {
    index: 0,
    token_ids: chat.ids,
    finish_reason: chat.end.finish_reason === "length" ? "length" : "stop",
    stop_reason: chat.end.stop,
  };
  const context = { model, chat_request: asked, prompt_token_ids: chat.prompt };
  const answer = { request_id: "x", choices: [choice] };
  says("derender, whole", await words("/v1/chat/completions/derender", { ...context, generate_response: answer }));
  says("derender, as one chunk", await words("/v1/chat/completions/derender", { ...context, stream: true, generate_chunk: answer }));
}

async function sample(from: Engine, sampling: Sampling, prompt_ids?: number[]): Promise<ReadTurn> {
  const request = { model, messages, tools: [bashTool], tool_choice: null, sampling, call_id: crypto.randomUUID(), live: true };
  return read(await Array.fromAsync(from.sample({ ...request, ...(prompt_ids ? { prompt_ids: IdText.of(prompt_ids) } : {}) }, signal)));
}

function wordsOf({ text, reasoning, calls }: ReadTurn): Words {
  return { text, reasoning, calls: calls.map(({ name, arguments: args }) => [name, args]) };
}

/** null where the route refuses. */
async function words(path: string, body: unknown): Promise<Words | null> {
  const headers = { "content-type": "application/json" };
  const response = await fetch(baseUrl + path, { method: "POST", headers, body: JSON.stringify(body) });
  if (!response.ok) return null;
  const answer = (await response.json()) as { choices?: Choice[]; chunk?: { choices: Choice[] } };
  const [choice] = answer.chunk?.choices ?? answer.choices ?? [];
  const message = (choice?.message ?? choice?.delta ?? {}) as {
    content?: string;
    reasoning?: string;
    tool_calls?: { index?: number; function: { name?: string; arguments?: string } }[];
  };
  const calls = new Map<number, [string, string]>();
  for (const [at, call] of (message.tool_calls ?? []).entries()) {
    const joined = calls.get(call.index ?? at) ?? ["", ""];
    calls.set(call.index ?? at, [joined[0] + (call.function.name ?? ""), joined[1] + (call.function.arguments ?? "")]);
  }
  return { text: message.content ?? "", reasoning: message.reasoning ?? "", calls: [...calls.values()] };
}
