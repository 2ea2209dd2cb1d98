/**
 * SGLang's wire (0.5.23): no ids while streaming, `response_token_ids`, pairs in the meta info, `top_k` 0 refused. A
 * token is a character, as in scripted-engine.ts.
 */
import { bytesOf, expertsAt } from "./npy.ts";
import { decode, encode, encodeShown, endOfTurn, logprobOf, render, said, type WireRequest } from "./scripted-engine.ts";
import type { Body, Wire } from "./scripted-wire.ts";

/** How a server with `--enable-return-routed-experts` behaves. */
export type SglangExperts = {
  /** `short`: leaves out one token. `beside`: tells them beside the choices, as for requests without meta info. */
  told: "as asked" | "short" | "beside" | "no base64" | "negative" | null;
  /** What it was started with. */
  model_path?: string;
  options?: Record<string, unknown> | null;
  /** With `return_sampling_mask` it keeps the sampled token and the next id. `other`: keeps another one than was sampled. */
  support?: "told" | "other" | "short";
};

export const sglangWith = ({ told, model_path, options, support }: SglangExperts): Wire => ({
  generates: (path) => path === "/v1/chat/completions" || path === "/generate",
  ask(path, body) {
    switch (path) {
      case "/v1/models":
        return { object: "list", data: [{ id: "scripted", object: "model", max_model_len: 8192 }] };
      case "/get_server_info":
        return {
          version: "0.5.23",
          ...(support && { sampling_mask_max_tokens: 4096 }),
          ...(options !== null && { pp_size: 1, ...options }),
        };
      case "/model_info":
        return { model_path: model_path ?? "scripted", weight_version: "w7" };
      case "/tokenize":
        return { tokens: typeof body.prompt === "string" ? encodeShown(body.prompt) : promptOf(body), count: 0 };
      case "/detokenize":
        return { text: decode(body.tokens as number[]) };
      case "/abort_request":
      case "/flush_cache":
        return {};
      default:
        return undefined;
    }
  },
  answer(body, reply) {
    const { quirk } = reply;
    if (body.stream && body.return_token_ids) throw new Error("SGLang answers 400 here: return_token_ids is not supported with streaming");
    const prompt = (body.input_ids as number[] | undefined) ?? (typeof body.text === "string" ? encodeShown(body.text) : promptOf(body));
    const ids = [...encode(said(reply)), ...(reply.finish_reason === "length" ? [] : [endOfTurn])];
    // Temperature is applied before the softmax; a grammar leaves one choice.
    const scale = body.regex === undefined ? ((body.temperature as number | undefined) ?? 1) : 0;
    const pairs = ids.map((id, at): [number | null, number, string] => [
      logprobOf(id, prompt.length + at) / (scale || Infinity),
      id,
      decode([id]),
    ]);
    if (quirk === "one_minus_9999" && pairs[0]) pairs[0][0] = -9999;
    if (quirk === "one_pair_less") pairs.pop();
    const type = quirk === "abort" ? "abort" : reply.finish_reason === "length" ? "length" : "stop";
    const routed = told !== null && body.return_routed_experts ? routedOf(body, [...prompt, ...ids], told) : null;
    const best = pairs.map((pair) => [pair]);
    const meta = {
      id: body.rid,
      finish_reason: { type, ...(type === "stop" ? { matched: reply.stop_reason ?? endOfTurn } : {}) },
      prompt_tokens: prompt.length,
      completion_tokens: ids.length,
      cached_tokens: 2,
      weight_version: "w7",
      output_token_logprobs: pairs,
      ...(quirk === "no_top_logprobs" ? {} : { output_top_logprobs: best }),
      ...(routed !== null && told !== "beside" && { routed_experts: routed }),
      ...(support !== undefined && body.return_sampling_mask === true ? supportOf(body, pairs, support) : {}),
    };
    if (body.sampling_params !== undefined)
      return {
        json: {
          text: said(reply),
          output_ids: ids,
          meta_info: meta,
          ...(body.return_prompt_token_ids ? { prompt_token_ids: prompt } : {}),
        },
      };
    const choice = {
      index: 0,
      message: {
        role: "assistant",
        content: reply.text ?? null,
        reasoning_content: reply.reasoning ?? null,
        tool_calls:
          reply.tool_calls?.map((call, index) => ({
            id: call.id ?? `call_${index}`,
            index,
            type: "function",
            function: { name: call.name, arguments: call.arguments },
          })) ?? null,
      },
      logprobs: { content: [] },
      finish_reason: type === "stop" && reply.tool_calls ? "tool_calls" : type,
      matched_stop: reply.stop_reason ?? null,
      ...(quirk === "router_strips_prompt" ? {} : { prompt_token_ids: prompt }),
      ...(quirk === "router_strips_meta"
        ? {}
        : { response_token_ids: quirk === "other_ids" ? ids.map((id) => id + 1) : ids, meta_info: meta }),
    };
    const completion_tokens = ids.length + (quirk === "counts_one_more" ? 1 : 0);
    return {
      json: {
        id: "x",
        model: body.model,
        choices: [choice],
        usage: { prompt_tokens: prompt.length, completion_tokens, total_tokens: 0 },
        ...(routed !== null && told === "beside" && { sglext: { routed_experts: routed } }),
        metadata: {
          weight_version: "w7",
          weight_versions: [
            { version: "w6", start: 0, end: 2 },
            { version: "w7", start: 2, end: null },
          ],
        },
      },
    };
  },
  refusal: (status, message) => ({ object: "error", message, type: "BadRequestError", param: null, code: status }),
});

export const sglangWire: Wire = sglangWith({ told: null });

/** As SGLang refuses it without a `top_k`. */
function supportOf(body: Body, pairs: [number | null, number, string][], support: NonNullable<SglangExperts["support"]>): object {
  const top_k = Number(body.top_k ?? -1);
  if (top_k < 1 || top_k > 4096) throw new Error(`SGLang answers 400 here: return_sampling_mask requires a finite top_k, got ${top_k}`);
  const first = support === "other" ? 1 : 0;
  const sets = pairs.map(([, id]) => [id + first, id + first + 1]);
  return {
    output_token_sampling_mask: support === "short" ? sets.slice(1) : sets,
    output_token_sampling_logprobs: pairs.map(([logprob]) => (logprob ?? 0) / 2),
  };
}

/** SGLang's `state_capturer`: int32 of all positions but the last, from the asked one on, without their shape. */
function routedOf(body: Body, ids: number[], told: SglangExperts["told"]): string {
  const start = Math.min(Number(body.routed_experts_start_len ?? 0), ids.length - 1);
  const rows = ids.map(expertsAt).slice(start, ids.length - (told === "short" ? 2 : 1));
  const numbers = rows.flat(2).map((one, at) => (told === "negative" && at === 0 ? -1 : one));
  const base64 = bytesOf(numbers, "int32").toString("base64");
  return told === "no base64" ? "-".repeat(base64.length) : base64;
}

function promptOf(body: Body): number[] {
  const messages = (body.messages as (WireRequest["messages"][number] & { reasoning_content?: string })[]).map((message) => ({
    ...message,
    reasoning: message.reasoning_content,
  }));
  return render({ messages, tools: body.tools as unknown[] | undefined, add_generation_prompt: body.add_generation_prompt });
}
