/** The cost of a session grows with its new tokens, not with calls × prompt length. Steps are counted, not time. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Message } from "../../base/schema/message.ts";
import type { LogEntry } from "../../base/schema/session-log.ts";
import { layOut } from "../../reconstruct/log/conversations.ts";
import { findEvidence, outcomeOf } from "../../reconstruct/log/outcome.ts";
import { readLog } from "../../reconstruct/log/read-log.ts";
import { findEdges } from "../../reconstruct/tree/edges.ts";
import { findParents } from "../../reconstruct/tree/parents.ts";
import { buildTree } from "../../reconstruct/tree/token-tree.ts";
import { assistant, LogBuilder, system, toolCall, toolResult, user } from "../fakes/records/log-builder.ts";

/** A tool loop. With `drift`, each prompt has the last turn in other tokens than were sampled, so every call is a branch. */
function session(calls: number, drift: boolean): LogEntry[] {
  const log = new LogBuilder();
  let messages = [system("be good"), user("fix it please")];
  for (let turn = 0; turn < calls; turn++) {
    const says = assistant(`step ${turn} goes on and on`, toolCall(`${turn}`, `{"n":${turn}}`));
    const sampled = drift ? log.said(says).with(0, 100_000 + turn) : undefined;
    log.call({ messages, says, ...(sampled && { sampled }) });
    messages = [...messages, says, toolResult(`${turn}`, `result of ${turn} and more`)];
  }
  return log.entries;
}

/** The same loop with a picture in its first message, and always with drift. */
function pictured(calls: number): LogEntry[] {
  const log = new LogBuilder();
  const sha256 = "a".repeat(64);
  const shown = { type: "image" as const, sha256, media_type: "image/png", bytes: 9, width: 8, height: 8 };
  let messages: Message[] = [{ role: "user", parts: [shown] }];
  const head = [5, 7, 7, 7, 6];
  for (let turn = 0; turn < calls; turn++) {
    const says = assistant(`step ${turn} goes on and on`, toolCall(`${turn}`, `{"n":${turn}}`));
    const prompt = [...head, ...log.prompt(messages.slice(1))];
    log.call({ messages, says, prompt, media: [{ sha256, start: 1, length: 3 }], sampled: log.said(says).with(0, 100_000 + turn) });
    messages = [...messages, says, toolResult(`${turn}`, `result of ${turn} and more`)];
  }
  return log.entries;
}

function steps(entries: LogEntry[]): number {
  const { calls } = readLog(entries);
  const places = layOut(calls);
  const evidence = findEvidence(calls, places);
  const outcomes = new Map(calls.map((call) => [call.call_id, outcomeOf(call, evidence.get(call.call_id))]));
  const edges = findEdges(calls, findParents(calls, places, outcomes), places);
  const tree = buildTree(calls, edges, places);
  assert.equal([...edges.values()].filter((edge) => edge.match === "root").length, 1);
  return tree.steps + places.token_trie.steps;
}

test("twice the calls of an append-only session cost about twice the steps", () => {
  const growth = steps(session(400, false)) / steps(session(200, false));
  assert.ok(growth < 2.2, `grew ${growth} times`);
});

test("twice the calls of a session that drifts at every turn cost about twice the steps", () => {
  const growth = steps(session(400, true)) / steps(session(200, true));
  assert.ok(growth < 2.5, `grew ${growth} times`);
});

test("twice the calls of a session that saw a picture cost about twice the steps", () => {
  const growth = steps(pictured(400)) / steps(pictured(200));
  assert.ok(growth < 2.5, `grew ${growth} times`);
});
