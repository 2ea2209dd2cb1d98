/**
 * An engine that speaks vLLM's wire with a template and a tokenizer that drift: what it samples it samples letter by
 * letter, where the tokenizer would take whole words, and what its template makes of reasoning can be chosen. It takes
 * prompt ids, and it writes down what it really conditioned on.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type ChatMessage, type ChatTool, renderChat } from "../../../practice/template.ts";
import { type TurnDelta, TurnParser } from "../../../practice/turn-parser.ts";
import { logprobOf } from "./scripted-engine.ts";
import { ToyTokenizer } from "./toy-tokenizer.ts";

/** What the template does with the reasoning of earlier turns. */
export type Thoughts =
  | "printed"
  | "never printed"
  /** As Qwen3's: only behind the user's last words. */
  | "until the user speaks"
  /** The same where no parser cuts thoughts out of turns: they are text, and the template takes them out of that. */
  | "in the text until the user speaks"
  /** The generation prompt closes an empty block that no history has. */
  | "empty block in the generation prompt";

export type Sampling = {
  text: string;
  /** `length`: it is cut off, and no end of turn is sampled. */
  finish?: "stop" | "length";
  /** The stop string that ended it; it stands at the end of `text`. */
  stop?: string;
  /** The token that ends the turn. */
  end?: string;
};

/** `index` counts the generations. */
export type Policy = (asked: { prompt: string; body: Record<string, unknown>; index: number }) => Sampling;

export type Exchanged = {
  request: Record<string, unknown>;
  prompt_token_ids: number[];
  token_ids: number[];
  logprobs: (number | null)[];
  status: number;
};

export class TemplatedEngine implements AsyncDisposable {
  url = "";
  readonly exchanges: Exchanged[] = [];
  /** Requests to the tokenizer's routes: what suffix probes cost. */
  asked = 0;
  maxModelLen = 1_000_000;
  takesPromptIds = true;
  /** As Kimi K3's template: behind the last words, where tools must be called, it says so; the tokenizer's route is not told. */
  printsToolChoice = false;
  /** Every `/tokenize` of messages fails in this way. */
  rendersNothing: number | null = null;
  /** It samples on other ids than it was given, and says so. */
  cutsPrompts = false;
  /** Held back before each answer. */
  before: Promise<unknown> = Promise.resolve();
  thoughts: Thoughts;
  readonly tokenizer: ToyTokenizer;
  readonly #policy: Policy;
  readonly #server = createServer((incoming, outgoing) => void this.#serve(incoming, outgoing).catch(() => outgoing.destroy()));

  private constructor(policy: Policy, thoughts: Thoughts, tokenizer: ToyTokenizer) {
    this.#policy = policy;
    this.thoughts = thoughts;
    this.tokenizer = tokenizer;
  }

  /** Two engines with one tokenizer are two workers of one model. */
  static async start(policy: Policy, thoughts: Thoughts = "printed", tokenizer = new ToyTokenizer()): Promise<TemplatedEngine> {
    const engine = new TemplatedEngine(policy, thoughts, tokenizer);
    await new Promise<void>((resolve) => engine.#server.listen(0, "127.0.0.1", resolve));
    engine.url = `http://127.0.0.1:${(engine.#server.address() as AddressInfo).port}`;
    return engine;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  render(messages: ChatMessage[], tools: ChatTool[], generate: boolean): string {
    const lastUser = messages.findLastIndex(({ role }) => role === "user");
    const shown = messages.map(asText).map((message, index) => {
      if (this.thoughts === "in the text until the user speaks")
        return index > lastUser || typeof message.content !== "string"
          ? message
          : { ...message, content: message.content.replace(/^.*<\/think>\n*/s, "") };
      const keeps = this.thoughts === "printed" || (this.thoughts === "until the user speaks" && index > lastUser);
      return keeps ? message : { ...message, reasoning: undefined };
    });
    const block = this.thoughts === "empty block in the generation prompt" && generate ? "<think>\n\n</think>\n\n" : "";
    return renderChat(shown, tools, generate) + block;
  }

  async #serve(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    if (incoming.url === "/health") return void outgoing.writeHead(200).end();
    if (incoming.url === "/v1/models") return json(outgoing, 200, { data: [{ id: "templated", max_model_len: this.maxModelLen }] });
    if (incoming.url === "/version") return json(outgoing, 200, { version: "templated" });
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk as Buffer);
    const body = JSON.parse(Buffer.concat(chunks).toString() || "{}") as Record<string, unknown> & {
      messages: ChatMessage[];
      tools?: ChatTool[];
    };
    if (incoming.url === "/tokenize") {
      this.asked++;
      if (this.rendersNothing !== null && body.messages) return json(outgoing, this.rendersNothing, { error: { message: "no" } });
      const text =
        typeof body.prompt === "string" ? body.prompt : this.render(body.messages, body.tools ?? [], body.add_generation_prompt !== false);
      const tokens = this.tokenizer.encode(text);
      return json(outgoing, 200, { count: tokens.length, tokens });
    }
    if (incoming.url === "/detokenize") {
      this.asked++;
      return json(outgoing, 200, { prompt: this.tokenizer.decode(body.tokens as number[]) });
    }
    if (incoming.url !== "/v1/chat/completions") return json(outgoing, 404, { error: { message: `no route ${incoming.url}` } });
    const given = (body.kv_transfer_params as { prompt_token_ids?: number[] } | undefined)?.prompt_token_ids;
    const rendered = given && this.takesPromptIds ? given : this.tokenizer.encode(this.render(this.#toldAll(body), body.tools ?? [], true));
    const prompt = this.cutsPrompts && body.stream ? rendered.slice(1) : rendered;
    if (prompt.length >= this.maxModelLen)
      return json(outgoing, 400, {
        error: { message: `This model's maximum context length is ${this.maxModelLen} tokens.`, param: "input_tokens", code: 400 },
      });
    if (!body.stream) return json(outgoing, 200, probed(prompt));
    await this.before;
    this.#answer(body, prompt, outgoing);
  }

  #toldAll({ messages, tool_choice }: { messages: ChatMessage[]; tool_choice?: unknown }): ChatMessage[] {
    return this.printsToolChoice && tool_choice === "required" ? [...messages, { role: "system", content: "You MUST call." }] : messages;
  }

  #answer(body: Record<string, unknown>, prompt: number[], outgoing: ServerResponse): void {
    const {
      text,
      finish = "stop",
      stop,
      end = "<|im_end|>",
    } = this.#policy({ prompt: this.tokenizer.decode(prompt), body, index: this.exchanges.length });
    const ids = [...text].flatMap((letter) => this.tokenizer.encode(letter));
    if (finish === "stop" && stop === undefined) ids.push(...this.tokenizer.encode(end));
    const logprobs = ids.map((id, index) => logprobOf(id, prompt.length + index));
    this.exchanges.push({ request: body, prompt_token_ids: prompt, token_ids: ids, logprobs, status: 200 });
    const parser = new TurnParser({ tools: Array.isArray(body.tools) });
    const shown = stop === undefined ? text : text.slice(0, -stop.length);
    const isParsed = this.thoughts !== "in the text until the user speaks";
    const deltas = isParsed ? joined([...parser.feed(shown), ...parser.finish()]) : [{ type: "content" as const, text: shown }];
    const calls = deltas.filter(({ type }) => type === "tool_call");
    outgoing.writeHead(200, { "content-type": "text/event-stream" });
    const send = (chunk: unknown): void => void outgoing.write(`data: ${JSON.stringify(chunk)}\n\n`);
    send({ model: "templated", prompt_token_ids: prompt, choices: [{ index: 0, delta: { role: "assistant", content: "" } }] });
    for (const delta of deltas)
      send({ model: "templated", choices: [{ index: 0, delta: toWire(delta, calls.indexOf(delta), this.exchanges.length) }] });
    const content = ids.map((_, index) => ({ token: "", logprob: logprobs[index] }));
    send({ model: "templated", choices: [{ index: 0, delta: {}, logprobs: { content }, token_ids: ids }] });
    const reason = finish === "stop" && calls.length > 0 ? "tool_calls" : finish;
    send({ model: "templated", choices: [{ index: 0, delta: {}, finish_reason: reason, stop_reason: stop ?? null }] });
    send({
      model: "templated",
      choices: [],
      usage: { prompt_tokens: prompt.length, completion_tokens: ids.length, total_tokens: prompt.length + ids.length },
    });
    outgoing.end("data: [DONE]\n\n");
  }
}

/** It reads no pictures, and says where they were. */
function asText(message: ChatMessage): ChatMessage {
  if (!Array.isArray(message.content)) return message;
  return { ...message, content: message.content.map(({ text }) => ({ type: "text", text: text ?? "[picture]" })) };
}

/** The parser says text in pieces; a stream may join them. */
function joined(deltas: TurnDelta[]): TurnDelta[] {
  const all: TurnDelta[] = [];
  for (const delta of deltas) {
    const last = all.at(-1);
    if (delta.type !== "tool_call" && last?.type === delta.type) last.text += delta.text;
    else all.push({ ...delta });
  }
  return all;
}

function toWire(delta: TurnDelta, index: number, generation: number): Record<string, unknown> {
  if (delta.type === "reasoning") return { reasoning: delta.text };
  if (delta.type === "content") return { content: delta.text };
  const { name, arguments: args } = delta;
  return { tool_calls: [{ index, id: `chatcmpl-tool-${generation}-${index}`, type: "function", function: { name, arguments: args } }] };
}

function probed(prompt: number[]): unknown {
  const content = [{ token: "x", logprob: -0.5, top_logprobs: [{ token: "x", logprob: -0.5 }] }];
  return {
    prompt_token_ids: prompt,
    choices: [{ message: { role: "assistant", content: "x" }, finish_reason: "length", token_ids: [1], logprobs: { content } }],
  };
}

function json(outgoing: ServerResponse, status: number, body: unknown): void {
  outgoing.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}
