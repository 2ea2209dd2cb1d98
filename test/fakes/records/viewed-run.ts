/**
 * A run as a person reads it: `clamp` is mixed, `parse` always fails, `sort` always passes, `fetch` has nulls. Samples of a
 * group begin alike and part at their second turn; one has a picture, one a branch, one forced and undelivered tokens.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Message } from "../../../base/schema/message.ts";
import type { RolloutRecord, Verdict } from "../../../base/schema/rollout.ts";
import type { Trajectory } from "../../../base/schema/trajectory.ts";
import { reconstruct } from "../../../reconstruct/index.ts";
import { assistant, LogBuilder, system, toolCall, toolResult, user } from "./log-builder.ts";

export const tokenizer = "tok1";

/** One pixel. */
export const png = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

export type ViewedTask = { task_id: string; rewards: (number | null)[] };

export const viewedTasks: ViewedTask[] = [
  { task_id: "clamp", rewards: [1, 0, 0, 0, 1, 0, 0, 1] },
  { task_id: "parse", rewards: [0, 0, 0, 0] },
  { task_id: "sort", rewards: [1, 1, 1, 1] },
  { task_id: "fetch", rewards: [0, null, 1, null] },
];

/** Writes the folder, one rollout at a time. `turns`: of each rollout, at least 2. */
export async function writeViewedRun(folder: string, tasks = viewedTasks, { groups = 1, turns = 4, words = 1 } = {}): Promise<void> {
  await mkdir(join(folder, "sessions"), { recursive: true });
  await mkdir(join(folder, "vocabulary"), { recursive: true });
  const vocabulary = new Map<string, number>();
  const [trajectories, records]: [string[], string[]] = [[], []];
  let at = 0;
  for (const { task_id, rewards } of tasks)
    for (let group = 0; group < groups; group++)
      for (const [sample_index, reward] of rewards.entries()) {
        const made = viewedRollout({
          at: at++,
          task_id,
          group_id: `${task_id}-g${group}`,
          sample_index,
          size: rewards.length,
          reward,
          turns,
          words,
          vocabulary,
        });
        trajectories.push(`${JSON.stringify(made.trajectory)}\n`);
        records.push(`${JSON.stringify(made.record)}\n`);
      }
  await writeFile(join(folder, "trajectories.jsonl"), trajectories.join(""));
  await writeFile(join(folder, "rollouts.jsonl"), records.join(""));
  const texts = [...vocabulary].map(([text, id]) => `${JSON.stringify({ id, text })}\n`);
  await writeFile(join(folder, "vocabulary", `${tokenizer}.jsonl`), texts.join(""));
}

type Order = {
  at: number;
  task_id: string;
  group_id: string;
  sample_index: number;
  size: number;
  reward: number | null;
  turns: number;
  words: number;
  vocabulary: Map<string, number>;
};

export function viewedRollout(order: Order): { trajectory: Trajectory; record: RolloutRecord } {
  const { at, task_id, group_id, sample_index, size, reward, turns, words, vocabulary } = order;
  const rollout_id = `roll${at}`;
  const session_id = `ses${at}`;
  const step = 1 + (at % 5);
  const policy = { version: `v${step}`, step };
  const log = new LogBuilder(
    { rollout_id, task_id, group_id, sample_index, labels: { split: at % 3 === 0 ? "held-out" : "train" } },
    vocabulary,
  );
  const [opened] = log.entries;
  if (opened?.type === "opened") opened.session_id = session_id;
  const messages: Message[] = [
    system("You mend a repository with the tools that you have."),
    user(`Mend \`${task_id}\` so that its tests pass.`),
  ];
  let parent: string | null = null;
  for (let turn = 0; turn < turns; turn++) {
    const says = sayingOf(turn, turns, sample_index, words);
    const isLost = sample_index === 3 && turn === 1;
    if (isLost) log.call({ messages, says, parent, policy, tokenizer, delivery: "cut" });
    const sampled = log.said(says).length;
    const logprobs = Array.from({ length: sampled }, (_, token) => -(((token * 7 + at) % 11) ** 2) / 20);
    const id = log.call({ messages: [...messages], says, parent, policy, tokenizer, logprobs, grammar: sample_index === 5 && turn === 2 });
    messages.push(says);
    if (turn < turns - 1) messages.push(resultOf(turn, sample_index, words));
    parent = id;
  }
  if (sample_index === 2)
    log.call({
      messages: [...messages.slice(0, 2), assistant("I looked at the file, and edited it."), user("Go on from this summary.")],
      says: assistant("done"),
      parent,
      policy,
      tokenizer,
    });
  const verdict = verdictOf(reward);
  const facts = { status: "graded" as const, reward, in_loss: reward !== null, mask_reason: reward === null ? "grader_timeout" : null };
  const trajectory = reconstruct(log.entries, {
    ...facts,
    stop_reason: "exited",
    group: { size },
    harness: { name: "pi", version: "0.9", config_hash: null },
  });
  const record: RolloutRecord = {
    schema_version: 1,
    ...{ rollout_id, attempt: 1, task_id, task_hash: "h", group_id, group_size: size, sample_index, harness: "pi", harness_version: "0.9" },
    ...{
      state: "done",
      session_id,
      stop_reason: "exited",
      exit_code: 0,
      verdict,
      revision: 1,
      error: null,
      sandbox: null,
      setup: null,
      services: null,
    },
    ...{ work: null, steps: [], network: null, forked_from: null, replay: null, resume: null, user: null, mask_reason: facts.mask_reason },
    times: { queued: 0, init: 800, run: 5_000, post: 38_000 + 1_000 * sample_index, done: 41_000 + 1_000 * sample_index },
    output_tail: "wrote clamp.py\nbye",
    summary: {
      turns: trajectory.calls.length,
      sampled_tokens: trajectory.fidelity.sampled_tokens,
      trainable_tokens: trajectory.fidelity.trainable_tokens,
      untrained_by_agent: {},
      traces: trajectory.traces.length,
    },
  };
  return { trajectory, record };
}

function sayingOf(turn: number, turns: number, sample: number, words: number): Message {
  const more = Array.from({ length: words }, (_, at) => `word${at % 97}`).join(" ");
  if (turn === 0) return assistant(toolCall("c0", '{"cmd":"ls"}'));
  if (turn === turns - 1) return assistant(`I think that this is done. ${more}`);
  const bound = sample % 2 === 0 ? "min(x, high)" : "max(x, high)";
  return assistant(
    `I'll fix the upper bound ${more}`,
    toolCall(`c${turn}`, JSON.stringify({ path: "clamp.py", old: "return x", new: `return ${bound}` }), "edit"),
  );
}

function resultOf(turn: number, sample: number, words: number): Message {
  if (turn === 0) return toolResult("c0", `clamp.py test_clamp.py ${"x ".repeat(words)}`);
  const shown = sample === 3 && turn === 1 ? [{ type: "image" as const, url: png }] : [];
  const is_error = sample % 2 === 1 && turn === 1;
  const text = is_error ? "edit failed: the text occurs twice in clamp.py" : "edited clamp.py";
  return { role: "tool", parts: [{ type: "tool_result", call_id: `c${turn}`, content: [{ type: "text", text }, ...shown], is_error }] };
}

function verdictOf(reward: number | null): Verdict {
  const plain = { components: {}, tier: "T3" as const, isolation: "container" as const, grader: "tests", duration_ms: 900 };
  if (reward === null) {
    const error = { code: "grader_timeout" as const, message: "The tests did not end within 900 seconds.", status: null };
    return { ...plain, reward, status: "grader_timeout", evidence: {}, error };
  }
  const failed = ["test_above", "test_edge"].map((name) => ({ name, outcome: "failed" }));
  const evidence =
    reward === 1
      ? { required: 3, failed_count: 0, failed: [] }
      : { required: 3, failed_count: 2, failed, output_tail: "E  assert clamp(9, 0, 5) == 5\nE  where 9 = clamp(9, 0, 5)" };
  return { ...plain, reward, status: "graded", evidence, error: null };
}
