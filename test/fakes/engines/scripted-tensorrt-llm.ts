/** Answers as TensorRT-LLM's chat does. It takes OpenAI's fields and refuses all others (`extra="forbid"`). */
import { render, type ScriptedReply, said, type WireRequest } from "./scripted-engine.ts";
import type { Body, Wire } from "./scripted-wire.ts";

/** What it knows; any other field is refused. */
const known = new Set(
  "model messages tools tool_choice stream stream_options max_tokens max_completion_tokens temperature top_p top_k min_p repetition_penalty presence_penalty frequency_penalty logit_bias stop seed logprobs top_logprobs response_format".split(
    " ",
  ),
);

export const tensorrtLlmWire: Wire = {
  generates: (path) => path === "/v1/chat/completions",
  ask: (path) => (path === "/v1/models" ? { object: "list", data: [{ id: "scripted", object: "model" }] } : undefined),
  answer(body, reply) {
    const usage = { prompt_tokens: render(body as WireRequest).length, completion_tokens: said(reply).length, total_tokens: 0 };
    if (!body.stream) return { json: { model: "scripted", choices: [{ index: 0, message: { role: "assistant", content: "x" } }], usage } };
    const chunk = (delta: Body, finish_reason: string | null) =>
      frame({ model: "scripted", choices: [{ index: 0, delta, finish_reason }] });
    return {
      frames: [
        chunk({ role: "assistant", content: reply.text ?? "" }, null),
        chunk({}, reply.finish_reason ?? "stop"),
        frame({ model: "scripted", choices: [], usage }),
        "data: [DONE]\n\n",
      ],
    };
  },
  refusal: (status, message) => ({ object: "error", message, type: "BadRequestError", param: null, code: status }),
};

/** A script that refuses what TensorRT-LLM refuses. */
export function forbidExtras(reply: ScriptedReply): (request: Body) => ScriptedReply {
  return (request) => {
    const extra = Object.keys(request).find((key) => key !== "probe" && !known.has(key));
    return extra === undefined ? reply : { refuse: { status: 400, message: `body.${extra}: Extra inputs are not permitted` } };
  };
}

function frame(chunk: unknown): string {
  return `data: ${JSON.stringify(chunk)}\n\n`;
}
