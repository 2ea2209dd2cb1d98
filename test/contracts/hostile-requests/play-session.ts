/** One session of a hostile client: requests that are mutated, go on from mutated answers, come twice, and are left. */

import { readJson } from "../../../base/schema/read-json.ts";
import type { ScriptedReply } from "../../fakes/engines/scripted-engine.ts";
import type { Client } from "../../fakes/proxies/proxy-at.ts";
import type { Draw } from "./draw.ts";
import { hostileWord, mutate, toText } from "./mutate.ts";
import type { Body, Speaker } from "./speakers.ts";

export type Sent = { path: string; text: string; status: number; answer: string };

/** What the model says: mostly sense, and now and then names and arguments of no tool. */
export function reply(draw: Draw): ScriptedReply {
  if (draw.chance(0.02)) return { text: "cut", cutAfter: 1 };
  const text = draw.of(["Done.", "I look.\n", "", " ", hostileWord(draw)]);
  const call = () => ({
    name: draw.of([
      "bash",
      "bash",
      "todo",
      "apply_patch",
      "agents__spawn",
      "local_shell",
      "computer",
      "computer_use_preview",
      hostileWord(draw),
    ]),
    arguments: draw.of([
      '{"command": "ls"}',
      '{"command":["ls"]}',
      '{"actions":[{"type":"click","button":"left","x":1.0,"y":2},{"type":"wait"}]}',
      '{"type":"double_click","x":1,"y":2,"__proto__":{"a":1}}',
      "{}",
      "",
      '{"a":1.0,"__proto__":{"b":1}}',
      '{"command',
      "[1]",
      "[".repeat(300),
    ]),
  });
  return {
    text,
    ...(draw.chance(0.3) && { reasoning: draw.of(["I think.", "\n", hostileWord(draw)]) }),
    ...(draw.chance(0.4) && { tool_calls: draw.chance(0.3) ? [call(), call()] : [call()] }),
    ...(draw.chance(0.05) && { finish_reason: draw.of(["length", "content_filter", "constructor", "abort"]) }),
    ...(draw.chance(0.05) && { quirk: draw.of(["no_ids", "no_logprobs", "one_null_logprob", "usage_mismatch", "no_usage"] as const) }),
  };
}

/** Plays up to `count` requests, each answered before the next one, but for twins that come at once. */
export async function playSession(client: Client, speaker: Speaker, draw: Draw, count: number): Promise<Sent[]> {
  const sent: Sent[] = [];
  const known: unknown[] = [];
  let ask = structuredClone(draw.of(speaker.first));
  let plain = ask;
  while (sent.length < count) {
    const isTwin = draw.chance(0.05);
    const request = draw.chance(0.25) ? speaker.streamed(ask) : ask;
    const text = toText(request.body);
    const headers = draw.chance(0.1) ? labelled(draw) : {};
    if (draw.chance(0.04)) await leave(client, request.path, text);
    const answers = await Promise.all(Array.from({ length: isTwin ? 2 : 1 }, () => send(client, { path: request.path, text, headers })));
    sent.push(...answers);
    const answer = answers[0]?.status === 200 && request === ask ? parsed(answers[0].answer) : null;
    if (answer) known.push(...idsIn(answer));
    const next = answer && speaker.next(ask, answer);
    // It goes on, asks the same again, goes back to what was valid, or begins anew.
    if (next && draw.chance(0.8)) plain = next;
    else if (draw.chance(0.5)) plain = structuredClone(draw.of(speaker.first));
    ask = structuredClone(plain);
    const mutations = draw.of([0, 0, 1, 1, 1, 2, 4]);
    for (let mutation = 0; mutation < mutations; mutation++) mutate(ask.body, draw, known);
    if (mutations < 2 && draw.chance(0.3)) plain = ask;
  }
  return sent;
}

type Request = { path: string; text: string; headers?: Record<string, string>; signal?: AbortSignal };

function post(client: Client, { path, text, headers, signal }: Request): Promise<Response> {
  const own = { authorization: `Bearer ${client.key}`, "content-type": "application/json" };
  return fetch(client.proxy.url + path, { method: "POST", headers: { ...headers, ...own }, body: text, ...(signal && { signal }) });
}

async function send(client: Client, request: Request): Promise<Sent> {
  const response = await post(client, request);
  return { ...request, status: response.status, answer: await response.text() };
}

/** Asks and does not wait for the answer; it may come back for it. */
async function leave(client: Client, path: string, text: string): Promise<void> {
  const gone = new AbortController();
  const asked = post(client, { path, text, signal: gone.signal }).then((response) => response.text());
  await Promise.race([asked, new Promise(setImmediate)]);
  gone.abort();
  await asked.catch(() => undefined);
}

/** Headers by which harnesses name their agents and sessions. */
function labelled(draw: Draw): Record<string, string> {
  const name = draw.of(["__proto__", "constructor", "main", "sub 1", "x".repeat(300)]);
  return draw.of<Record<string, string>>([
    { "x-session-id": name, "x-parent-session-id": name },
    { "thread-id": name, "x-codex-parent-thread-id": name, "x-openai-subagent": name },
    { "x-claude-code-agent-id": name, "x-stainless-retry-count": name },
    { "user-agent": `GeminiCLI/${name}`, "session-id": name },
    { "x-interaction-type": "conversation-subagent", "x-codex-window-id": name },
  ]);
}

function parsed(text: string): Body | null {
  try {
    return readJson(text) as Body;
  } catch {
    return null;
  }
}

/** Ids and signatures of an answer: what a client may name later. */
function idsIn(value: unknown): unknown[] {
  if (Array.isArray(value)) return value.flatMap(idsIn);
  if (value === null || typeof value !== "object") return [];
  return Object.entries(value).flatMap(([key, inner]) =>
    typeof inner === "string" && /id$|signature|encrypted_content|^name$/i.test(key) ? [inner] : idsIn(inner),
  );
}
