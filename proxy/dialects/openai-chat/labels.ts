/** Chat harnesses that name themselves: opencode and its forks by session headers, Copilot by the kind of interaction. */
import type { RequestClass } from "../../../base/schema/session-spec.ts";
import type { CallLabels, Headers } from "../dialect.ts";
import { callLabels, classOfSystemPrompt, firstText, hasTools } from "../request-labels.ts";

export function labelsOfChat(headers: Headers, body: Record<string, unknown>): CallLabels {
  const agent = agentOf(headers);
  return callLabels(agent, classOf(headers, body, agent), headers, body);
}

/** Copilot's sub-agents have no id on the wire: they share one name, and their lineage separates them. */
function agentOf(headers: Headers): string {
  if (headers["x-parent-session-id"]) return headers["x-session-id"] ?? "sub_agent";
  return headers["x-interaction-type"] === "conversation-subagent" ? "sub_agent" : "main";
}

function classOf(headers: Headers, body: Record<string, unknown>, agent: string): RequestClass {
  if (headers["x-interaction-type"] === "conversation-compaction") return "compaction";
  const system = firstText(body.messages, ["system", "developer"]);
  // Qwen Code's agent that writes down what it learnt of its user has tools of its own, and nothing in its headers.
  if (/\bmanaged memory extraction (?:sub-?)?agent\b/i.test(system.slice(0, 400))) return "memory";
  const side = hasTools(body) ? null : classOfSystemPrompt(system);
  return side ?? (agent === "main" ? "main" : "sub_agent");
}
