/**
 * What is stored of a session of 60 calls that grows to 60 k tokens, beside what is new in it?
 *
 *     node bench/stored-bytes.ts
 *
 * New is: each token id once and each logprob, as JSON, and each message once, as the harness sent it.
 */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { CallBegun, CallFinished, LogEntry } from "../base/schema/session-log.ts";
import { markdownTable, surroundings } from "./measure.ts";
import { conversationOf, payloadOf } from "./proxy-overhead/payloads.ts";
import { startAlone } from "./proxy-overhead/start-alone.ts";

const payload = payloadOf("s");
const allowed = 1.3;
const bytes = (value: unknown): number => Buffer.byteLength(JSON.stringify(value));

const before = surroundings();
await using alone = await startAlone();
const { alidade } = alone;
const keys = await alidade.ask<string[]>("open", 1);
const { calls } = await alone.play({ payload: payload.name, concurrency: 1, keys });
const folder = await alidade.ask<string>("close");
const text = await readFile(join(folder, (await readdir(folder))[0]!), "utf8");
const entries = text
  .trimEnd()
  .split("\n")
  .map((line) => JSON.parse(line) as LogEntry);

const begun = entries.filter((entry): entry is CallBegun => entry.type === "call_begun");
const finished = entries.filter((entry): entry is CallFinished => entry.type === "call_finished");
if (calls !== payload.turns || finished.length !== payload.turns)
  throw new Error(`${finished.length} of ${payload.turns} calls are in the log`);
const last = finished.at(-1)!;
const tokens = last.prompt_ids!.base_len + last.prompt_ids!.new.length + last.sampled_ids!.length;

const conversation = conversationOf(payload);
const news = {
  ids: finished.reduce((sum, call) => sum + bytes(call.prompt_ids!.new) + bytes(call.sampled_ids), 0),
  logprobs: finished.reduce((sum, call) => sum + bytes(call.logprobs), 0),
  messages: conversation.head.length + conversation.appended.reduce((sum, pieces) => sum + Buffer.concat(pieces).length, 0),
};
const isOnce = finished.slice(1).every((call) => call.prompt_ids!.new.length === payload.observationIds);
if (!isOnce) throw new Error("a prompt's ids are stored twice");
const all = news.ids + news.logprobs + news.messages;
const stored = Buffer.byteLength(text);
const ratio = stored / all;
const lines = [
  ["ids", String(news.ids)],
  ["logprobs", String(news.logprobs)],
  ["messages", String(news.messages)],
  ["new in all", String(all)],
  ["stored", String(stored)],
  ...[...new Set(entries.map(({ type }) => type))].map((type) => [
    `… ${type}`,
    String(entries.filter((entry) => entry.type === type).reduce((sum, entry) => sum + bytes(entry) + 1, 0)),
  ]),
];
console.log(`${before.machine}; Node ${before.node}; commit ${before.commit}\n${begun.length} calls, ${tokens} tokens at the end\n`);
console.log(markdownTable(["", "bytes"], lines).join("\n"));
console.log(`\n${ratio.toFixed(2)} × what is new (allowed: ${allowed})`);
if (ratio > allowed) process.exitCode = 1;
