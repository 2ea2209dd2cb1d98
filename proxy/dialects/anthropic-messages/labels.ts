/** Claude Code names its sub-agents in a header; its compactions only by what they ask. */
import type { RequestClass } from "../../../base/schema/session-spec.ts";
import type { CallLabels, Headers } from "../dialect.ts";
import { callLabels, classOfSystemPrompt, firstText, hasTools, lastText, textOfContent } from "../request-labels.ts";

export function labelsOfMessages(headers: Headers, body: Record<string, unknown>): CallLabels {
  const agent = headers["x-claude-code-agent-id"] ?? (headers["x-parent-session-id"] ? (headers["x-session-id"] ?? "sub_agent") : "main");
  return callLabels(agent, classOf(body, agent), headers, body);
}

function classOf(body: Record<string, unknown>, agent: string): RequestClass {
  const last = lastText(body.messages);
  // A compaction keeps the tools; its last message ends with a block that requests these two tags.
  if (/CRITICAL: Respond with TEXT ONLY/.test(last) && last.includes("<analysis>") && last.includes("<summary>")) return "compaction";
  if (body.max_tokens === 1 && firstText(body.messages, ["user"]) === "quota") return "quota";
  const side = hasTools(body) ? null : classOfSystemPrompt(textOfContent(body.system));
  return side ?? (agent === "main" ? "main" : "sub_agent");
}
