/** Why a turn ended, in the words of chat completions. */
import type { FinishReason } from "../../base/schema/message.ts";

/** `abort` is the inference servers' own word. An unknown or missing reason is an error. */
export function chatFinish(reason: string | null | undefined): FinishReason {
  return reasons.get(reason ?? "") ?? "error";
}

const reasons = new Map<string, FinishReason>([
  ["stop", "stop"],
  ["tool_calls", "tool_calls"],
  ["function_call", "tool_calls"],
  ["length", "length"],
  // vLLM stops a repeating turn where the request enables it.
  ["repetition", "length"],
  ["abort", "abort"],
  ["content_filter", "content_filter"],
]);
