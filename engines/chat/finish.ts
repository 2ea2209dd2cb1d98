/** Why a turn ended, in the words of chat completions. */
import type { FinishReason } from "../../schema/message.ts";

/** `abort` is the inference servers' own word. What has no name here, or was not said, is an error. */
export function chatFinish(reason: string | null | undefined): FinishReason {
  return reasons.get(reason ?? "") ?? "error";
}

const reasons = new Map<string, FinishReason>([
  ["stop", "stop"],
  ["tool_calls", "tool_calls"],
  ["function_call", "tool_calls"],
  ["length", "length"],
  // vLLM stops a turn that goes round in circles, where it was asked to.
  ["repetition", "length"],
  ["abort", "abort"],
  ["content_filter", "content_filter"],
]);
