/** Codex names its threads in headers; its sub-agents are threads of their own with a parent. */
import type { RequestClass } from "../../../base/schema/session-spec.ts";
import type { CallLabels, Headers } from "../dialect.ts";
import { callLabels, classOfSystemPrompt, firstText, hasTools, lastText } from "../request-labels.ts";
import { isCompaction } from "./compaction.ts";

export function labelsOfResponses(headers: Headers, body: Record<string, unknown>): CallLabels {
  const agent = agentOf(headers);
  return callLabels(agent, classOf(headers, body, agent), headers, body);
}

/** Compaction and review also carry the sub-agent header; only a spawned thread has a parent. */
function agentOf(headers: Headers): string {
  const spawned = headers["x-codex-parent-thread-id"] !== undefined || headers["x-openai-subagent"] === "collab_spawn";
  if (spawned) return headers["thread-id"] ?? headers["x-openai-subagent"] ?? "sub_agent";
  return headers["x-parent-session-id"] ? (headers["x-session-id"] ?? "sub_agent") : "main";
}

function classOf(headers: Headers, body: Record<string, unknown>, agent: string): RequestClass {
  if (headers["x-openai-subagent"] === "compact" || isCompaction(body)) return "compaction";
  if (!hasTools(body)) {
    // A task may quote the words, so they count only in a request without tools and at the head of the last message.
    if (/\bCONTEXT CHECKPOINT\b/.test(lastText(body.input).slice(0, 400))) return "compaction";
    const system = typeof body.instructions === "string" ? body.instructions : firstText(body.input, ["system", "developer"]);
    const side = classOfSystemPrompt(system);
    if (side) return side;
  }
  return agent === "main" ? "main" : "sub_agent";
}
