/**
 * Trainers that know a group by the tokens of its first prompt: NeMo RL computes one baseline for all rows whose first
 * `length` tokens are equal, so a rollout with a prompt of its own has the advantage 0, and nothing says so.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Trajectory } from "../../base/schema/trajectory.ts";
import { exporterNamed } from "../../exporters/registry.ts";
import { reconstruct } from "../../reconstruct/index.ts";
import { renderSummary } from "../../view/fidelity/render.ts";
import { FidelitySummarizer } from "../../view/fidelity/summary.ts";
import { exported } from "../fakes/records/exported.ts";
import { assistant, LogBuilder, recognised, system, user } from "../fakes/records/log-builder.ts";

type Facts = Parameters<typeof reconstruct>[1];
type Options = { prompt?: string; facts?: Facts; goOn?: (log: LogBuilder, first: string) => void; step?: number };

/** Its prompt has one token more for each word of `prompt`. */
function rollout(index: number, { prompt = "fix it", facts = {}, goOn = () => undefined, step = 4 }: Options = {}): Trajectory {
  const log = new LogBuilder({ rollout_id: `r${index}`, group_id: "g", sample_index: index });
  const [opened] = log.entries;
  if (opened?.type === "opened") opened.session_id = `ses${index}`;
  const policy = { version: `step-${step}`, step };
  const first = log.call({ messages: [system("be good"), user(prompt)], says: assistant(`answer ${index}`), policy });
  goOn(log, first);
  return reconstruct(log.entries, { status: "graded", reward: index % 2, group: { size: 2 }, ...facts });
}

const written = (format: string, group: Trajectory[]) => exported(exporterNamed(format), group);

type Datum = { message_log: { role: string; token_ids: number[] }[]; length: number; total_reward: number; loss_multiplier: number };
type Result = { response: { output: { prompt_token_ids?: number[] }[] }; reward: number };

/** As `extract_initial_prompt_messages` of NeMo RL finds the prompt of a row. */
function initialPrompt({ message_log, length }: Datum): string {
  const prompt: number[] = [];
  for (const { token_ids } of message_log) if (prompt.length < length) prompt.push(...token_ids);
  return prompt.join();
}

/** The first prompt by which NeMo RL knows each row, of a message log or of Gym's result. */
const promptsOf: Record<string, (row: Record<string, unknown>) => string> = {
  "nemo-rl": (row) => initialPrompt(row as Datum),
  "nemo-gym": (row) => String((row as Result).response.output.find((item) => item.prompt_token_ids)?.prompt_token_ids),
};

const compacted = (log: LogBuilder): void => {
  log.call({
    messages: [system("be good"), user("go on from the summary")],
    says: assistant("a longer answer than all that came before it"),
  });
};

for (const [format, promptOf] of Object.entries(promptsOf)) {
  const prompts = async (group: Trajectory[]) => {
    const { rows, report } = await written(format, group);
    return { prompts: rows.map(promptOf), report };
  };

  test(`${format}: the rollouts of a group are one group to NeMo RL, dummy rows and rollouts with a compaction among them`, async () => {
    for (const second of [
      rollout(1),
      rollout(1, { facts: { in_loss: false, in_baseline: true, mask_reason: "budget_spent" } }),
      rollout(1, { goOn: compacted }),
    ]) {
      const { prompts: said, report } = await prompts([rollout(0), second]);
      assert.equal(said.length, 2);
      assert.equal(new Set(said).size, 1, said.join(" | "));
      assert.deepEqual(report.left_out_groups, {});
    }
  });

  test(`${format}: a group whose rollouts begin with different prompts is left out, and says so`, async () => {
    const { prompts: said, report } = await prompts([rollout(0), rollout(1, { prompt: "fix it in /tmp/x" })]);
    assert.deepEqual([said, report.rows, report.left_out_groups], [[], 0, { prompts_differ: 1 }]);
    assert.deepEqual(report.left_out_rollouts, { prompts_differ: 1, group_left_out: 1 });
  });
}

function firstTurnUntrained(): Trajectory {
  const untrained = rollout(1, {
    goOn: (log, first) => {
      const messages = [system("be good"), user("fix it"), assistant("answer 1"), user("more")];
      log.call({ messages, says: assistant("and this"), parent: first, restored: [recognised(first, 2)] });
    },
  });
  for (const node of untrained.nodes)
    if (node.call_id === untrained.calls[0]?.call_id) Object.assign(node, { trainable: false, reason: "auxiliary" });
  return untrained;
}

test("nemo-rl: a first turn that is not trained stands behind the prompt, as what came in", async () => {
  const { rows } = await written("nemo-rl", [rollout(0), firstTurnUntrained()]);
  const [whole, partly] = rows as Datum[];
  assert.ok(whole && partly);
  assert.equal(initialPrompt(partly), initialPrompt(whole));
  assert.deepEqual(
    partly.message_log.map(({ role }) => role),
    ["user", "user", "assistant"],
  );
});

test("nemo-gym: a rollout whose first turn is not trained leaves out its group by a reason of its own, and fidelity finds no other prompt", async () => {
  const untrained = firstTurnUntrained();
  const { rows, report } = await written("nemo-gym", [rollout(0), untrained]);
  assert.deepEqual([rows, report.left_out_groups], [[], { first_turn_untrained: 1 }]);
  assert.deepEqual(report.left_out_rollouts, { first_turn_untrained: 1, group_left_out: 1 });
  const summarizer = new FidelitySummarizer({});
  for (const one of [rollout(0), untrained]) summarizer.add(one);
  assert.deepEqual(summarizer.summary.different_prompts, []);
});

test("miles finds how old a sample is: its weight versions are steps", async () => {
  const named = async (group: Trajectory[]) => (await written("miles", group)).rows.map((row) => row.weight_versions);
  assert.deepEqual(await named([rollout(0), rollout(1, { step: 5 })]), [["4"], ["5"]]);
});

test("prime-rl: advantages are reward minus mean, and rows that prime-rl would drop are left out", async () => {
  const worth = (rows: Record<string, unknown>[]) => rows.map((row) => Math.max(...(row.advantages as number[]).map(Math.abs)));
  const uneven = await written(
    "prime-rl",
    [0, 1, 3, 5].map((index) => rollout(index)),
  );
  assert.deepEqual(worth(uneven.rows), [0.75, 0.25, 0.25, 0.25]);
  const even = await written("prime-rl", [rollout(1), rollout(3)]);
  assert.deepEqual([even.rows, even.report.left_out], [[], { zero_advantage: 2 }]);
});

test("fidelity names the tasks whose groups begin with different prompts, by the rule of the exporters", () => {
  const said = (group: Trajectory[]) => {
    const summarizer = new FidelitySummarizer({});
    for (const trajectory of group) summarizer.add(trajectory);
    return { different: summarizer.summary.different_prompts, text: renderSummary(summarizer.summary) };
  };
  assert.deepEqual(said([rollout(0), rollout(1, { goOn: compacted })]).different, []);
  const { different, text } = said([rollout(0), rollout(1, { prompt: "fix it in /tmp/x" })]);
  assert.deepEqual(different, [{ task_id: rollout(0).task.id, groups: 1, of_groups: 1 }]);
  assert.match(text, /in 1 of 1 groups the rollouts begin with different prompts\. NeMo RL would compare none of them/);
});
