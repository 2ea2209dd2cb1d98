/**
 * What one session may take of the proxy that it shares with others. A sandboxed client is hostile input: each of these
 * has been used to stop its siblings. What a person runs in a session of their own is bounded only by what no harness does.
 */
import { z } from "zod";
import type { SessionSpec } from "../../base/schema/session-spec.ts";

const mebibyte = 1024 * 1024;
const count = z.number().int().positive();

export const Bounds = z.strictObject({
  connections: count
    .default(64)
    .describe(
      "connections of a sandbox that are open at once (by its door or its key), idle ones too; one more is reset (ten sub-agents keep two or three each)",
    ),
  calls_at_once: count
    .default(16)
    .describe(
      "requests of a session that are answered at once; more wait half a minute for their turn, then 429 (Claude Code asks up to ten)",
    ),
  requests_per_second: count
    .default(32)
    .describe("requests of a session over time; more wait, then 429 (sixteen at once, each answered in half a second)"),
  body_bytes: count
    .default(32 * mebibyte)
    .describe("bytes of one request; 413 (the vendors' own APIs take 32 MB, and a million tokens are 8 MB of text)"),
  body_values: count
    .default(64 * 1024)
    .describe("objects, lists, texts and numbers of JSON in one request; 413 (a million tokens in 2 500 turns of a tool make 50 000)"),
  bytes_in_flight: count
    .default(64 * mebibyte)
    .describe("bytes of a session's requests that are not answered yet; more are not read until there is room, then 429 (sixteen of 4 MB)"),
  new_bytes: count
    .default(8 * mebibyte)
    .describe(
      "bytes of one request that stood in none before it, a value of JSON counted as 256; 413 (a conversation of 400 000 tokens, or eight screenshots of 1 MB)",
    ),
  // What is new takes about 15 ms a megabyte of the thread that serves all: it is checked, compared, logged and written
  // for the engine. At this pace that is a five-hundredth of its time, so that a sibling's slowest call in a hundred is
  // its own doing.
  new_bytes_per_second: count
    .default(mebibyte / 8)
    .describe("the same over time, and as many as `new_bytes` at once; more wait, then 429 (a screenshot of 1 MB every eight seconds)"),
  network_connections: count
    .default(64)
    .describe("connections to hosts that its task allows, open at once; one more is reset (npm opens up to fifty)"),
  network_bytes: count
    .default(4 * 1024 * mebibyte)
    .describe(
      "bytes to and from such hosts over all of a rollout, set-up included, and as much for each grading; then its connections end",
    ),
});
export type Bounds = z.infer<typeof Bounds>;

/** So much a person's own session takes before it is a mistake: a body of 64 MiB and 512 connections, as ever. */
const ownBounds: Bounds = {
  connections: 512,
  calls_at_once: 512,
  requests_per_second: 5_000,
  body_bytes: 64 * mebibyte,
  body_values: 16 * mebibyte,
  bytes_in_flight: 1024 * mebibyte,
  new_bytes: 16 * 1024 * mebibyte,
  new_bytes_per_second: 1024 * mebibyte,
  network_connections: 512,
  network_bytes: 1024 * 1024 * mebibyte,
};

export function boundsOf({ sandboxed }: SessionSpec, ofSandboxes: Bounds): Bounds {
  return sandboxed ? ofSandboxes : ownBounds;
}

/** Budgets of a sandboxed session without its own. A spent one ends the session, as the policy's own doing. */
const sandboxedBudgets = {
  /** A day of calls, one every nine seconds: each stays in memory and is looked through by the next. */
  max_turns: 10_000,
  /** What a client has left is sampled to its end, so its connections alone do not bound it: four times those. */
  max_concurrent_calls: 64,
  /** Two hundred screenshots, or the ids and logprobs of several million tokens. About twice as much is in memory. */
  max_log_bytes: 256 * mebibyte,
} as const;

export function withBudgets(spec: SessionSpec): SessionSpec {
  return spec.sandboxed ? { ...spec, budgets: { ...sandboxedBudgets, ...spec.budgets } } : spec;
}
