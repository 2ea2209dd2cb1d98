/**
 * A scripted engine that speaks vLLM's wire over real HTTP, with faults on demand. A token is a character: the ids of a
 * text are its code points, so expected trajectories can be computed by hand, and a conversation that comes back
 * unchanged continues exactly.
 */
import { hash } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { canaryText } from "../../../proxy/pool/canary.ts";
import { expertsAt, npyOf } from "./npy.ts";

type WireMessage = {
  role: string;
  content?: unknown;
  reasoning?: string;
  tool_calls?: { id: string; function: { name: string; arguments: string } }[];
};
export type WireRequest = {
  model: string;
  messages: WireMessage[];
  prompt?: string | number[];
  kv_transfer_params?: { prompt_token_ids?: number[] };
  tools?: unknown[];
  stream?: boolean;
  [key: string]: unknown;
};

export type ScriptedReply = {
  text?: string;
  reasoning?: string;
  tool_calls?: { id?: string; name: string; arguments: string }[];
  finish_reason?: string;
  stop_reason?: string | number | null;
  /** HTTP status of a refusal instead of an answer. */
  refuse?: { status: number; message: string; retryAfter?: string };
  /** Close the connection without a byte of an answer. */
  isSilent?: boolean;
  /** Break the connection after this many sampled tokens. */
  cutAfter?: number;
  /** Wait for this before the first byte of the answer. */
  before?: Promise<unknown>;
  /** Wait for this after so many sampled tokens. */
  beforeToken?: { after: number; wait: Promise<unknown> };
  /** Wait for this before the end of the answer. */
  beforeEnd?: Promise<unknown>;
  /** Answer without token ids, without logprobs, or with one logprob (id) too few. */
  quirk?:
    | "drops_developer"
    | "no_ids"
    | "no_logprobs"
    | "no_top_logprobs"
    | "refuses_top_logprobs"
    | "one_null_logprob"
    | "long_token_texts"
    | "usage_mismatch"
    | "usage_mismatch_no_logprobs"
    | "no_usage"
    | "no_ids_no_usage"
    | "abort"
    | WireQuirk;
};

/** Faults of one wire alone: see the files beside this one. */
export type WireQuirk =
  | "duplicated_first_chunk"
  | "router_strips_meta"
  | "router_strips_prompt"
  | "router_strips_verbose"
  | "one_minus_9999"
  | "one_pair_less"
  | "other_ids"
  | "counts_one_more"
  | "truncated"
  | "prompt_of_other_length";

/** Ends a sampled turn; not a character that texts have. */
export const endOfTurn = 1;

const endOfTurnShown = "⏹".codePointAt(0) as number;

/** Behind the last code point of Unicode. */
const firstSpecial = 0x200000;

export const encode = (text: string): number[] => Array.from(text, (character) => character.codePointAt(0) as number);
/** As a tokenizer reads text: the end of a turn is seen in it. */
export const encodeShown = (text: string): number[] => encode(text).map((id) => (id === endOfTurnShown ? endOfTurn : id));
export const decode = (ids: number[]): string => ids.map((id) => (id === endOfTurn ? "⏹" : String.fromCodePoint(id))).join("");

/** The template: what the "model" is prompted with. */
export function render(request: Pick<WireRequest, "messages" | "tools" | "prompt"> & { add_generation_prompt?: unknown }): number[] {
  if (typeof request.prompt === "string") return encode(request.prompt);
  if (Array.isArray(request.prompt)) return request.prompt;
  const tools = request.tools?.length ? encode(`[tools ${request.tools.length}]`) : [];
  const turns = request.messages.flatMap((message) => {
    if (message.role !== "assistant")
      return [
        ...encode(
          `<${message.role}>${typeof message.content === "string" ? message.content : withShortPictures(JSON.stringify(message.content))}`,
        ),
        endOfTurn,
      ];
    const turn = {
      text: (message.content as string | null) ?? "",
      reasoning: message.reasoning,
      tool_calls: message.tool_calls?.map((call) => call.function),
    };
    return [...encode("<assistant>"), ...encode(said(turn)), endOfTurn];
  });
  const ids = [...tools, ...turns];
  return request.add_generation_prompt === false ? ids : [...ids, ...encode("<assistant>")];
}

/** A picture of a screen counts as 64 tokens, by its hash: as characters it would fill the context of every harness. */
function withShortPictures(content: string): string {
  return content.replace(/(?<=;base64,)[A-Za-z0-9+/=]{4000,}/g, (data) => hash("sha256", data));
}

/** The characters that the "model" sampled. */
export function said(turn: { text?: string; reasoning?: string; tool_calls?: { name: string; arguments: string }[] }): string {
  const reasoning = turn.reasoning ? `(${turn.reasoning})` : "";
  return reasoning + (turn.text ?? "") + (turn.tool_calls ?? []).map((call) => `{${call.name} ${call.arguments}}`).join("");
}

/** A logprob that depends on position and id only, so that a test can tell a shifted one. */
export const logprobOf = (id: number, position: number): number => -(((id * 31 + position * 7) % 97) + 1) / 100;

export class ScriptedEngine implements AsyncDisposable {
  readonly requests: WireRequest[] = [];
  /** The same as they stood on the wire. */
  readonly bodies: string[] = [];
  /** Requests whose client went away before the answer was complete. */
  aborted = 0;
  url = "";
  /** What `/weight_info` says; null: there is no such route. */
  weightVersion: string | null = null;
  /** The `root` that it reports for its models; null: none. */
  root: string | null = null;
  /** What `/reset_prefix_cache` does; null: there is no such route. */
  prefixReset: { success: boolean } | null = null;
  /** Every route answers 500. */
  isSick = false;
  /** Added to every token id: another tokenizer. */
  shift = 0;
  /** A server of before the summer of 2026 renders the messages, whatever ids it is given, and says nothing. */
  takesPromptIds = true;
  models = ["scripted"];
  /** Has experts, and tells in answers in one piece which ones the tokens took. `wrong`: leaves out one token. */
  routing: "told" | "wrong" | null = null;
  /** As 0.33: told to requests that ask for it. null: 0.32, which does not know the field. */
  weightSpans: { version: string; start: number; end: number }[] | null = null;
  /**
   * Lists tokens as a server with `--logprobs-mode processed_logprobs`. The sampled token and the next id are kept, the ids after
   * them are cut. `short`: the list ends before the last kept one. `wrong`: the probabilities of the kept ones do not add up to 1.
   */
  support: "told" | "short" | "wrong" | null = null;
  /** Adapters that it lists too: name -> base model. */
  adapters: Record<string, string> = {};
  /** Number of requests for its list of models. */
  listed = 0;
  /** Runs before each answer to a generation request of a harness, not for probes and canaries. The answer waits for it. */
  before: ((request: WireRequest) => Promise<unknown>) | null = null;
  /** What its tokenizer reads as one token anywhere in a text. */
  specials: readonly string[] = [];
  readonly #server = createServer((incoming, outgoing) => void this.#serve(incoming, outgoing).catch(() => outgoing.destroy()));
  readonly #script: (request: WireRequest, index: number) => ScriptedReply;

  private constructor(script: (request: WireRequest, index: number) => ScriptedReply) {
    this.#script = script;
  }

  /** `script` is asked for every generation; `requests` has those that are neither the probe's nor a canary. `host`: where it listens. */
  static async start(script: (request: WireRequest, index: number) => ScriptedReply, host = "127.0.0.1"): Promise<ScriptedEngine> {
    const engine = new ScriptedEngine(script);
    await new Promise<void>((resolve) => engine.#server.listen(0, host, resolve));
    engine.url = `http://${host}:${(engine.#server.address() as AddressInfo).port}`;
    return engine;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #serve(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    if (this.isSick) return json(outgoing, 500, { error: { message: "sick" } });
    if (incoming.url === "/health") return void outgoing.writeHead(200).end();
    if (incoming.url === "/weight_info" && this.weightVersion !== null) return json(outgoing, 200, { weight_version: this.weightVersion });
    if (incoming.url?.startsWith("/reset_prefix_cache") && this.prefixReset !== null) return json(outgoing, 200, this.prefixReset);
    if (incoming.url === "/v1/models") {
      this.listed++;
      const models = this.models.map((id) => ({ id, max_model_len: 100_000, ...(this.root !== null && { root: this.root }) }));
      return json(outgoing, 200, { data: [...Object.entries(this.adapters).map(([id, parent]) => ({ id, parent })), ...models] });
    }
    if (incoming.url === "/version") return json(outgoing, 200, { version: "scripted" });
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString();
    const body = JSON.parse(text || "{}") as WireRequest;
    if (incoming.url === "/tokenize") {
      const tokens =
        typeof body.prompt === "string" ? this.#encodeText(body.prompt) : render({ ...body, messages: this.#printed(body.messages) });
      return json(outgoing, 200, { count: tokens.length, tokens: this.#own(tokens) });
    }
    if (incoming.url === "/detokenize")
      return json(outgoing, 200, { prompt: this.#decodeText((body.tokens as number[]).map((id) => id - this.shift)) });
    if (incoming.url !== "/v1/chat/completions" && incoming.url !== "/v1/completions")
      return json(outgoing, 404, { error: { message: `no route ${incoming.url}` } });
    if (!body.stream && (this.routing === null || body.max_tokens === 1)) return this.#probe(body, outgoing);
    const ours = isCanary(body);
    if (!ours) {
      this.requests.push(body);
      this.bodies.push(text);
      await this.before?.(body);
    }
    const reply = ours ? this.#script({ ...body, probe: true }, -1) : this.#script(body, this.requests.length - 1);
    await this.#answer(body, reply, outgoing).catch(() => outgoing.destroy());
  }

  #encodeText(text: string): number[] {
    const at = this.specials.findIndex((special) => text.includes(special));
    if (at === -1) return encodeShown(text);
    const parts = text.split(this.specials[at] as string).map((part) => this.#encodeText(part));
    return parts.flatMap((ids, index) => (index === 0 ? ids : [firstSpecial + at, ...ids]));
  }

  #decodeText(ids: number[]): string {
    return ids.map((id) => (id >= firstSpecial ? this.specials[id - firstSpecial] : decode([id]))).join("");
  }

  /** Many real templates print no developer turns, and say nothing. */
  #printed(messages: WireMessage[]): WireMessage[] {
    return this.#script({ model: "", messages: [], probe: true }, -1).quirk === "drops_developer"
      ? messages.filter((message) => message.role !== "developer")
      : messages;
  }

  #own(ids: number[]): number[] {
    return this.shift === 0 ? ids : ids.map((id) => id + this.shift);
  }

  /** The prompt as it was given, or as the template prints it. */
  #promptOf(request: WireRequest): number[] {
    const given = this.takesPromptIds ? request.kv_transfer_params?.prompt_token_ids : undefined;
    return given ?? this.#own(render(request));
  }

  /** The probe's one token; an engine that never gives ids does not give the probe any either. */
  #probe(body: WireRequest, outgoing: ServerResponse): void {
    const { quirk } = this.#script({ ...body, probe: true }, -1);
    if (quirk === "refuses_top_logprobs" && body.top_logprobs !== 0)
      return void json(outgoing, 400, {
        error: { message: `Requested sample logprobs of ${body.top_logprobs}, which is greater than max allowed: 0` },
      });
    if (this.support !== null && Number(body.top_logprobs) > 20)
      return void json(outgoing, 400, { error: { message: "Requested sample logprobs, which is greater than max allowed: 20" } });
    const best = this.support === null ? -0.5 : -0.5 / Number(body.temperature || 1);
    json(outgoing, 200, {
      ...(quirk === "no_ids" || quirk === "router_strips_prompt" ? {} : { prompt_token_ids: this.#promptOf(body) }),
      choices: [
        {
          message: { role: "assistant", content: "x" },
          finish_reason: "length",
          ...(quirk === "no_ids" ? {} : { token_ids: [120] }),
          ...this.#routed(body, this.#promptOf(body), 1),
          ...this.#weighed(body),
          logprobs:
            quirk === "no_logprobs"
              ? null
              : {
                  content: [
                    {
                      token: "x",
                      logprob: best,
                      top_logprobs: quirk?.endsWith("_top_logprobs")
                        ? []
                        : this.#listed(body, 120, best, [{ token: "x", logprob: best }], "told"),
                    },
                  ],
                },
        },
      ],
    });
  }

  /** Returns the answer in one piece. Writes arguments anew, as parsers do there. */
  #whole(request: WireRequest, reply: ScriptedReply): unknown {
    const prompt = this.#promptOf(request);
    const ids = [...encode(said(reply)), endOfTurn];
    const { tool_calls = [], ...message } = deltasOf(reply) as { tool_calls?: { function: { arguments: string } }[] };
    const rewritten = tool_calls.map((call) => ({
      ...call,
      function: { ...call.function, arguments: JSON.stringify(JSON.parse(call.function.arguments)) },
    }));
    const content = ids.map((id, index) => ({
      token: decode([id]),
      bytes: [...Buffer.from(decode([id]))],
      logprob: logprobOf(id, prompt.length + index),
      top_logprobs: this.#listed(request, id, logprobOf(id, prompt.length + index), alternatives(request.top_logprobs)),
    }));
    return {
      model: "scripted",
      prompt_token_ids: prompt,
      choices: [
        {
          index: 0,
          message: { role: "assistant", ...message, ...(rewritten.length > 0 && { tool_calls: rewritten }) },
          logprobs: { content },
          finish_reason: reply.finish_reason ?? (reply.tool_calls ? "tool_calls" : "stop"),
          stop_reason: reply.stop_reason ?? null,
          token_ids: this.#own(ids),
          ...this.#routed(request, [...prompt, ...this.#own(ids)], 0),
          ...this.#weighed(request),
        },
      ],
      usage: { prompt_tokens: prompt.length, completion_tokens: ids.length, total_tokens: prompt.length + ids.length },
    };
  }

  /** What it lists at the place of a token: ids if the request asks for them, else `others`. */
  #listed<Other>(
    request: WireRequest,
    id: number,
    logprob: number,
    others: Other[],
    told = this.support,
  ): (Other | { token: string; logprob: number })[] {
    const top = Number(request.top_logprobs ?? 0);
    if (this.support === null || !request.return_tokens_as_token_ids || top === 0) return others;
    const rest = Math.log(-Math.expm1(logprob)) - (told === "told" ? 0 : 1);
    const cut = told === "short" ? 0 : top - 2;
    return [logprob, rest, ...new Array<number>(cut).fill(-9999)].map((one, at) => ({ token: `token_id:${id + at}`, logprob: one }));
  }

  #weighed(request: WireRequest): { weight_versions?: unknown } {
    return this.weightSpans !== null && request.return_weight_versions ? { weight_versions: this.weightSpans } : {};
  }

  /** `more`: number of sampled tokens that `ids` lacks. */
  #routed(request: WireRequest, ids: number[], more: number): { routed_experts?: string } {
    if (this.routing === null) return {};
    const rows = ids.map(expertsAt).slice(Number(request.routed_experts_prompt_start ?? 0), ids.length - 1 + more);
    return { routed_experts: npyOf(this.routing === "wrong" ? rows.slice(1) : rows).toString("base64") };
  }

  async #answer(request: WireRequest, reply: ScriptedReply, outgoing: ServerResponse): Promise<void> {
    const gone = new Promise<void>((resolve) =>
      outgoing.once("close", () => {
        if (!outgoing.writableEnded) this.aborted++;
        resolve();
      }),
    );
    await Promise.race([reply.before, gone]);
    if (outgoing.destroyed) return;
    if (reply.isSilent) return void outgoing.destroy();
    if (reply.refuse) {
      const { status, message, retryAfter } = reply.refuse;
      if (retryAfter !== undefined) outgoing.setHeader("retry-after", retryAfter);
      return json(outgoing, status, { error: { message, code: status } });
    }
    if (!request.stream) {
      await Promise.race([reply.beforeEnd, gone]);
      return outgoing.destroyed ? undefined : json(outgoing, 200, this.#whole(request, reply));
    }
    outgoing.writeHead(200, { "content-type": "text/event-stream" });
    const send = (chunk: unknown): void => void outgoing.write(`data: ${JSON.stringify(chunk)}\n\n`);
    const prompt = this.#promptOf(request);
    const withIds = !reply.quirk?.startsWith("no_ids");
    const isChat = request.prompt === undefined;
    if (isChat)
      send({
        model: "scripted",
        ...(withIds ? { prompt_token_ids: prompt } : {}),
        choices: [{ index: 0, delta: { role: "assistant", content: "" } }],
      });
    const ids = [...encode(said(reply)), endOfTurn];
    const deltas = deltasOf(reply);
    for (const [index, id] of ids.entries()) {
      if (reply.cutAfter === index) {
        // What was written reaches the client before the connection breaks.
        await new Promise((resolve) => outgoing.write(": flushed\n\n", resolve));
        await new Promise((resolve) => setTimeout(resolve, 20));
        return void outgoing.destroy();
      }
      if (reply.beforeToken?.after === index) await Promise.race([reply.beforeToken.wait, gone]);
      const logprob = reply.quirk === "one_null_logprob" && index === 0 ? null : logprobOf(id, prompt.length + index);
      const token = reply.quirk === "long_token_texts" ? "x".repeat(2 ** 20) : decode([id]);
      const piece = isChat
        ? {
            delta: index === 0 ? deltas : {},
            logprobs: {
              content: [{ token, logprob, top_logprobs: this.#listed(request, id, logprob ?? 0, alternatives(request.top_logprobs)) }],
            },
          }
        : {
            text: index === 0 ? (reply.text ?? "") : "",
            logprobs: {
              tokens: [decode([id])],
              token_logprobs: [logprob],
              top_logprobs: [Object.fromEntries(alternatives(request.logprobs).map((one) => [one.token, one.logprob]))],
            },
          };
      const chunk = {
        model: "scripted",
        choices: [
          {
            index: 0,
            ...piece,
            ...(withIds ? { token_ids: this.#own([id]) } : {}),
            ...(withIds && !isChat ? { prompt_token_ids: index === 0 ? prompt : null } : {}),
            ...(reply.quirk?.endsWith("no_logprobs") ? { logprobs: null } : {}),
          },
        ],
      };
      send(chunk);
      if (reply.quirk === "duplicated_first_chunk" && index === 0) send(chunk);
    }
    await Promise.race([reply.beforeEnd, gone]);
    if (outgoing.destroyed) return;
    const finish = reply.quirk === "abort" ? "abort" : (reply.finish_reason ?? (reply.tool_calls ? "tool_calls" : "stop"));
    send({
      model: "scripted",
      choices: [
        {
          index: 0,
          ...(isChat ? { delta: {} } : { text: "" }),
          finish_reason: finish,
          stop_reason: reply.stop_reason ?? null,
          ...this.#weighed(request),
        },
      ],
    });
    const completion_tokens = ids.length + (reply.quirk?.startsWith("usage_mismatch") ? 1 : 0);
    if (!reply.quirk?.endsWith("no_usage"))
      send({
        model: "scripted",
        choices: [],
        usage: { prompt_tokens: prompt.length, completion_tokens, total_tokens: prompt.length + completion_tokens },
      });
    outgoing.end("data: [DONE]\n\n");
  }
}

/** The likeliest tokens are the same at each place. */
function alternatives(count: unknown): { token: string; logprob: number }[] {
  return Array.from({ length: typeof count === "number" ? count : 0 }, (_, at) => ({ token: `alternative ${at}`, logprob: -1 - at }));
}

function deltasOf(reply: ScriptedReply): Record<string, unknown> {
  return {
    ...(reply.reasoning ? { reasoning: reply.reasoning } : {}),
    ...(reply.text ? { content: reply.text } : {}),
    ...(reply.tool_calls
      ? {
          tool_calls: reply.tool_calls.map((call, index) => ({
            index,
            id: call.id ?? `engine-tool-${index}`,
            type: "function",
            function: { name: call.name, arguments: call.arguments },
          })),
        }
      : {}),
  };
}

/** A question of the proxy's own. */
function isCanary({ messages }: WireRequest): boolean {
  return messages?.length === 1 && messages[0]?.content === canaryText;
}

function json(outgoing: ServerResponse, status: number, body: unknown): void {
  outgoing.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}
