/**
 * The prompt that identifies a group for the trainer. NeMo RL compares rollouts whose first prompts have the same tokens: a
 * rollout whose prompt differs by one token stands alone, with an advantage of 0.
 */
import { hash } from "node:crypto";
import type { FlatRow } from "../../reconstruct/index.ts";

/** A rollout may have rows with several first prompts: behind a compaction, of a sub-agent. */
export type PromptOf = (row: FlatRow) => readonly number[];

export function hashOfPrompt(ids: readonly number[]): string {
  return hash("sha256", Int32Array.from(ids), "base64");
}

/** The first prompt that most rollouts have a row of; of several the one that is met first. `rollouts`: each one's hashes. */
export function mostCommon(rollouts: Iterable<ReadonlySet<string>>): string | null {
  const counts = new Map<string, number>();
  for (const prompts of rollouts) for (const prompt of prompts) counts.set(prompt, (counts.get(prompt) ?? 0) + 1);
  const most = Math.max(0, ...counts.values());
  return [...counts].find(([, count]) => count === most)?.[0] ?? null;
}

/** Everything before the first token that was sampled; of a dummy row, which is a prompt and nothing else, all of it. */
export function firstPromptOf(row: FlatRow): number[] {
  const sampled = row.dummy ? undefined : row.segments.find(({ kind }) => kind === "sampled");
  return sampled === undefined ? row.token_ids : row.token_ids.slice(0, sampled.start);
}
