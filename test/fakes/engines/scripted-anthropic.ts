/** Anthropic's Messages API, streamed. */
import { encode } from "./scripted-engine.ts";
import type { Wire } from "./scripted-wire.ts";

export const anthropicWire: Wire = {
  generates: (path) => path === "/v1/messages",
  ask(path) {
    if (path === "/v1/models") return { data: [{ id: "scripted", type: "model", display_name: "", created_at: "" }], has_more: false };
    return path === "/v1/messages/count_tokens" ? { input_tokens: 12 } : undefined;
  },
  answer(_body, reply) {
    const frames: string[] = [];
    const emit = (event: { type: string; [key: string]: unknown }) =>
      void frames.push(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
    const usage = { input_tokens: 10, cache_read_input_tokens: 2, cache_creation_input_tokens: 0, output_tokens: 1 };
    emit({ type: "message_start", message: { id: "m", type: "message", role: "assistant", model: "scripted", content: [], usage } });
    let index = 0;
    const block = (content_block: unknown, deltas: unknown[]) => {
      emit({ type: "content_block_start", index, content_block });
      for (const delta of deltas) emit({ type: "content_block_delta", index, delta });
      emit({ type: "content_block_stop", index: index++ });
    };
    if (reply.reasoning) block({ type: "thinking", thinking: "", signature: "" }, [{ type: "thinking_delta", thinking: reply.reasoning }]);
    if (reply.text)
      block(
        { type: "text", text: "" },
        halves(reply.text).map((text) => ({ type: "text_delta", text })),
      );
    for (const [at, call] of (reply.tool_calls ?? []).entries())
      block(
        { type: "tool_use", id: call.id ?? `toolu_${at}`, name: call.name, input: {} },
        halves(call.arguments).map((partial_json) => ({ type: "input_json_delta", partial_json })),
      );
    const stop_reason =
      reply.finish_reason === "length" ? "max_tokens" : reply.tool_calls ? "tool_use" : reply.stop_reason ? "stop_sequence" : "end_turn";
    const output_tokens = encode(reply.text ?? "").length + 1;
    emit({ type: "message_delta", delta: { stop_reason, stop_sequence: reply.stop_reason ?? null }, usage: { output_tokens } });
    emit({ type: "message_stop" });
    return { frames };
  },
  refusal: (status, message) => ({
    type: "error",
    error: { type: status === 404 ? "not_found_error" : status === 429 ? "rate_limit_error" : "invalid_request_error", message },
  }),
};

function halves(text: string): string[] {
  const middle = Math.ceil(text.length / 2);
  return [text.slice(0, middle), text.slice(middle)].filter((part) => part !== "");
}
