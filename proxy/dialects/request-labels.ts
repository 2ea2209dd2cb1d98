/** What headers and body fields say about a call, for all dialects. These labels grant no rights. */
import type { RequestClass } from "../../base/schema/session-spec.ts";
import type { CallLabels, Headers } from "./dialect.ts";
import { isObject } from "./edge.ts";

/** Long enough for any id and user agent; what a harness puts there is bounded before it is on the record. */
const maxLength = 200;

/** Headers that name a session, thread or window in one harness or another, under their label. */
const headerLabels: Record<string, string> = {
  "user-agent": "user_agent",
  "session-id": "session_id",
  session_id: "session_id",
  "x-session-id": "session_id",
  "x-litellm-session-id": "session_id",
  "x-claude-code-session-id": "session_id",
  "thread-id": "thread_id",
  "x-codex-window-id": "window_id",
  "x-codex-parent-thread-id": "parent_thread_id",
  "x-openai-subagent": "subagent",
  "x-claude-code-agent-id": "agent_id",
  "x-parent-session-id": "parent_session_id",
  "x-interaction-type": "interaction_type",
  "x-stainless-retry-count": "retry_count",
};

export function callLabels(agent: string, requestClass: RequestClass, headers: Headers, body: Record<string, unknown>): CallLabels {
  const labels: Record<string, string> = {};
  for (const [header, label] of Object.entries(headerLabels)) if (headers[header]) labels[label] ??= headers[header].slice(0, maxLength);
  if (typeof body.prompt_cache_key === "string") labels.prompt_cache_key = body.prompt_cache_key.slice(0, maxLength);
  return { agent: agent.slice(0, maxLength), request_class: requestClass, labels };
}

export function hasTools(body: Record<string, unknown>): boolean {
  return Array.isArray(body.tools) && body.tools.length > 0;
}

/** All text of a message in any dialect's form: a string, or a list of parts with text. */
export function textOfContent(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content.map((part: unknown) => (isObject(part) && typeof part.text === "string" ? part.text : "")).join("");
}

/** The text of the first message whose role is one of `roles`. */
export function firstText(messages: unknown, roles: readonly string[]): string {
  const found = Array.isArray(messages) ? messages.find((message) => isObject(message) && roles.includes(String(message.role))) : undefined;
  return isObject(found) ? textOfContent(found.content) : "";
}

export function lastText(messages: unknown): string {
  const last: unknown = Array.isArray(messages) ? messages.at(-1) : undefined;
  return isObject(last) ? textOfContent(last.content) : "";
}

/**
 * Side calls without tools, by how their system prompt begins or names itself. Only wordings that no task has by
 * accident: a call taken for a side call would not be trained.
 */
export function classOfSystemPrompt(system: string): RequestClass | null {
  const head = system.slice(0, 400);
  if (/\btitle generator\b|\bgenerate a (?:concise|short|brief)[^.\n]{0,40} title\b/i.test(head)) return "title";
  if (/\bindicates a new conversation topic\b/i.test(head)) return "topic";
  if (/\b(?:context|conversation) (?:summarization|summarisation|compaction) (?:assistant|agent)\b/i.test(head)) return "compaction";
  return null;
}
