/**
 * llama-server's wire: all ids under `__verbose`, no logprobs for the parts of characters of several bytes (here: for
 * every character that is not ASCII) nor for a stop string's tokens; tools + stream + logprobs is refused. A token is a
 * character, as in scripted-engine.ts.
 */
import { decode, encode, endOfTurn, logprobOf, render, said, type WireRequest } from "./scripted-engine.ts";
import type { Body, Wire } from "./scripted-wire.ts";

export const llamaCppWire: Wire = {
  generates: (path) => path === "/v1/chat/completions",
  ask(path, body) {
    switch (path) {
      case "/v1/models":
        return { object: "list", data: [{ id: "scripted", object: "model" }] };
      case "/props":
        return { build_info: "b11434", default_generation_settings: { n_ctx: 8192 } };
      case "/slots":
        return [{ id: 0, is_processing: false }];
      case "/apply-template":
        return { prompt: promptOf(body) };
      case "/tokenize":
        return { tokens: toIds(body.content as string) };
      case "/detokenize":
        return { content: decode(body.tokens as number[]) };
      default:
        return undefined;
    }
  },
  answer(body, reply) {
    const { quirk } = reply;
    if (body.stream && body.logprobs && body.tools)
      throw new Error("llama-server answers 400 here: logprobs is not supported with tools + stream");
    const prompt = promptOf(body);
    const count = toIds(prompt).length;
    const ids = [...encode(said(reply)), ...(reply.finish_reason === "length" ? [] : [endOfTurn])];
    const entries = ids.flatMap((id, at) => {
      const logprob = body.grammar === undefined ? logprobOf(id, count + at) : 0;
      return id > 0x7f
        ? []
        : [
            {
              id: id + (quirk === "other_ids" ? 1 : 0),
              token: decode([id]),
              logprob,
              top_logprobs: quirk === "no_top_logprobs" ? [] : [{ id, token: decode([id]), logprob }],
            },
          ];
    });
    const verbose = {
      tokens: ids,
      prompt: quirk === "prompt_of_other_length" ? `${prompt}?` : prompt,
      truncated: quirk === "truncated",
      stop_type: reply.finish_reason === "length" ? "limit" : reply.stop_reason ? "word" : "eos",
      stopping_word: reply.stop_reason ?? "",
    };
    const choice = {
      index: 0,
      message: {
        role: "assistant",
        content: reply.text ?? null,
        ...(reply.reasoning ? { reasoning_content: reply.reasoning } : {}),
        ...(reply.tool_calls
          ? {
              tool_calls: reply.tool_calls.map((call) => ({
                type: "function",
                id: "",
                function: { name: call.name, arguments: call.arguments },
              })),
            }
          : {}),
      },
      finish_reason: reply.finish_reason ?? (reply.tool_calls ? "tool_calls" : "stop"),
      logprobs: quirk === "no_logprobs" ? null : { content: entries },
    };
    return {
      json: {
        model: "scripted.gguf",
        choices: [choice],
        usage: { prompt_tokens: count, completion_tokens: ids.length, total_tokens: count + ids.length },
        ...(quirk === "router_strips_verbose" ? {} : { __verbose: verbose }),
      },
    };
  },
  refusal: (status, message) => ({
    error: { code: status, message, type: /context/.test(message) ? "exceed_context_size_error" : "invalid_request_error" },
  }),
};

function promptOf(body: Body): string {
  const messages = (body.messages as (WireRequest["messages"][number] & { reasoning_content?: string })[]).map((message) => ({
    ...message,
    reasoning: message.reasoning_content,
  }));
  return decode(render({ messages, tools: body.tools as unknown[] | undefined }));
}

function toIds(text: string): number[] {
  return encode(text).map((id) => (id === stopSign ? endOfTurn : id));
}

const stopSign = encode(decode([endOfTurn]))[0];
