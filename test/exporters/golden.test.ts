/** What each format says of the golden session, field by field, against rows that were written by hand. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { exporterNamed } from "../../exporters/registry.ts";
import { exported } from "../fakes/records/exported.ts";
import { after, full, helper, main, mainTurns, sibling } from "../fakes/records/golden-rows.ts";
import { goldenSibling, goldenTools, goldenTrajectory } from "../fakes/records/golden-session.ts";

const golden = goldenTrajectory();
const brother = goldenSibling();
const ids = { golden: golden.trajectory_id, sibling: brother.trajectory_id };

const written = async (format: string) => exported(exporterNamed(format), [golden, brother]);

const start = [
  { role: "system", content: "be good" },
  { role: "user", content: "fix it" },
];
const chatTools = [
  {
    type: "function",
    function: { name: "bash", description: "runs a command", parameters: { type: "object", properties: { cmd: { type: "string" } } } },
  },
];
const toolCall = { id: "t1", type: "function", function: { name: "bash", arguments: '{"cmd":"ls"}' } };

/** Formats of many rows train 18 of the 25 sampled tokens: all but the turn whose client left. */
const undelivered = { undelivered: 1 };

test("flat: full length, null where nothing was sampled", async () => {
  const { rows, report } = await written("flat");
  assert.deepEqual(report.left_out, undelivered);
  const want = [full.helper, full.main, full.after, full.sibling];
  assert.deepEqual(
    rows.map((row) => [row.token_ids, row.loss_mask]),
    want.map((row) => [row.ids, row.mask]),
  );
  const unfilled = want.map(({ mask, logprobs }) => logprobs.map((logprob, at) => (mask[at] === 1 ? logprob : null)));
  assert.deepEqual(
    rows.map((row) => row.logprobs),
    unfilled,
  );
});

test("chat: the policy's turns weigh 1, each in one conversation", async () => {
  const { rows } = await written("chat");
  const said = rows.map((row) => (row.messages as { role: string; weight?: number }[]).map(({ role, weight }) => [role, weight]));
  assert.deepEqual(said, [
    [
      ["system", undefined],
      ["user", undefined],
      ["assistant", 1],
    ],
    [
      ...[
        ["system", undefined],
        ["user", undefined],
        ["assistant", 1],
        ["tool", undefined],
      ],
      ...[
        ["assistant", 1],
        ["user", undefined],
        ["assistant", 1],
      ],
    ],
    [
      ["system", undefined],
      ["user", undefined],
      ["user", undefined],
      ["assistant", 1],
    ],
    [
      ["system", undefined],
      ["user", undefined],
      ["assistant", 1],
    ],
  ]);
  assert.deepEqual(
    rows.map((row) => [row.reward, row.agent, row.tools]),
    [
      [1, "helper", []],
      [1, "main", chatTools],
      [1, "main", chatTools],
      [0, "main", chatTools],
    ],
  );
});

test("dpo: the better conversation and the worse one after the same prompt", async () => {
  const { rows, report } = await written("dpo");
  assert.equal(report.rows, 1);
  assert.deepEqual(rows, [
    {
      prompt: start,
      chosen: [
        { role: "assistant", content: null, reasoning_content: "hm", tool_calls: [toolCall], weight: 1 },
        { role: "tool", tool_call_id: "t1", content: "a.txt" },
        { role: "assistant", content: "found", weight: 1 },
        { role: "user", content: "summarise" },
        { role: "assistant", content: "sum up", weight: 1 },
      ],
      rejected: [{ role: "assistant", content: "no", weight: 1 }],
      tools: chatTools,
      chosen_reward: 1,
      rejected_reward: 0,
      group_id: "grp",
      chosen_rollout_id: "roll1",
      rejected_rollout_id: "roll2",
    },
  ]);
});

test("trl-dpo: the first turn that differs, with the tokens that were sampled", async () => {
  const { rows } = await written("trl-dpo");
  const call = { id: "t1", type: "function", function: { name: "bash", arguments: { cmd: "ls" } } };
  assert.deepEqual(rows, [
    {
      prompt: start,
      chosen: [{ role: "assistant", content: "", reasoning_content: "hm", tool_calls: [call] }],
      rejected: [{ role: "assistant", content: "no" }],
      tools: chatTools,
      prompt_ids: main.prompt,
      chosen_ids: [17, 18, 19, 20, 21, 22, 2],
      rejected_ids: [17, 2],
      chosen_reward: 1,
      rejected_reward: 0,
      group_id: "grp",
      chosen_rollout_id: "roll1",
      rejected_rollout_id: "roll2",
    },
  ]);
});

test("verl: prompt and response apart, one key a row", async () => {
  const { rows, report } = await written("verl");
  assert.deepEqual(report.left_out, undelivered);
  const of = (row: typeof main) => ({
    prompts: row.prompt,
    responses: row.response,
    response_mask: row.mask,
    rollout_log_probs: row.logprobs,
  });
  const golden1 = {
    uid: "grp",
    session_id: 0,
    reward_score: 1,
    reward_extra_info: { tests: 0.5, style: null },
    data_source: null,
    rollout_id: "roll1",
    trajectory_id: ids.golden,
    weight: 1,
  };
  const steps = (min: number, max: number) => ({ min_global_steps: min, max_global_steps: max });
  assert.deepEqual(rows, [
    { key: "grp_0_0", ...golden1, index: 0, ...of(helper), num_turns: 2, ...steps(1, 1), agent: "helper" },
    { key: "grp_0_1", ...golden1, index: 1, ...of(main), num_turns: 6, ...steps(1, 2), agent: "main" },
    { key: "grp_0_2", ...golden1, index: 2, ...of(after), num_turns: 3, ...steps(2, 2), agent: "main" },
    {
      ...{
        key: "grp_1_0",
        uid: "grp",
        session_id: 1,
        index: 0,
        ...of(sibling),
        reward_score: 0,
        reward_extra_info: {},
        num_turns: 2,
        ...steps(1, 1),
      },
      ...{ data_source: null, rollout_id: "roll2", trajectory_id: ids.sibling, agent: "main", weight: 1 },
    },
  ]);
});

test("verl: a row of a rollout that trains nothing has the turns of its last conversation, for verl takes none without a number", async () => {
  const hot = goldenTrajectory();
  for (const { sampling } of hot.calls) sampling.temperature = 0.5;
  const { rows } = await exported(exporterNamed("verl"), [hot]);
  assert.deepEqual(
    rows.map(({ response_mask, num_turns, reward_score }) => [response_mask, num_turns, reward_score]),
    [[[0], 3, 1]],
  );
});

for (const format of ["slime", "miles"])
  test(`${format}: prompt and response in one, one rollout_id for a rollout's rows`, async () => {
    const { rows } = await written(format);
    const of = (row: typeof main) => ({
      tokens: [...row.prompt, ...row.response],
      response: "",
      response_length: row.response.length,
      loss_mask: row.mask,
      rollout_log_probs: row.logprobs,
      status: "completed",
      remove_sample: false,
      label: null,
    });
    const about = (trajectory_id: string, rollout_id: string, sample_index: number, row_index: number, agent = "main") => ({
      metadata: { alidade: { trajectory_id, rollout_id, group_id: "grp", sample_index, row_index, agent } },
    });
    const numbers = (index: number, rollout_id: number) => ({ group_index: 0, index, rollout_id });
    const asked = (...messages: string[]) => ({
      prompt: messages.map((content, at) => ({ role: at === 0 ? "system" : "user", content })),
    });
    assert.deepEqual(rows, [
      {
        ...numbers(0, 0),
        ...asked("help", "count"),
        ...of(helper),
        ...{ reward: 1, weight_versions: ["1"], ...about(ids.golden, "roll1", 0, 0, "helper") },
      },
      {
        ...numbers(1, 0),
        ...asked("be good", "fix it"),
        ...of(main),
        ...{ reward: 1, weight_versions: ["1", "2"], ...about(ids.golden, "roll1", 0, 1) },
      },
      {
        ...numbers(2, 0),
        ...asked("be good", "sum up", "go on"),
        ...of(after),
        ...{ reward: 1, weight_versions: ["2"], ...about(ids.golden, "roll1", 0, 2) },
      },
      {
        ...numbers(3, 1),
        ...asked("be good", "fix it"),
        ...of(sibling),
        ...{ reward: 0, weight_versions: ["1"], ...about(ids.sibling, "roll2", 1, 0) },
      },
    ]);
  });

test("trl-grpo: one row a rollout, the longest, the group together", async () => {
  const { rows, report } = await written("trl-grpo");
  assert.deepEqual(report.left_out, { ...undelivered, other_row_of_rollout: 2 });
  const of = (row: typeof main) => ({
    prompt: start,
    prompt_ids: row.prompt,
    completion_ids: row.response,
    logprobs: row.logprobs,
    env_mask: row.mask,
    group_index: 0,
    group_id: "grp",
  });
  assert.deepEqual(rows, [
    { ...of(main), reward: 1, position: 0, rollout_id: "roll1", trajectory_id: ids.golden },
    { ...of(sibling), reward: 0, position: 1, rollout_id: "roll2", trajectory_id: ids.sibling },
  ]);
});

test("trl-async: full length, the rollout's advantage on each row, the oldest step that sampled it", async () => {
  const { rows } = await exported(exporterNamed("trl-async"), [golden, brother], { own: { advantage: "dr_grpo" } });
  const of = (row: typeof full.main) => ({ input_ids: row.ids, completion_mask: row.mask, old_log_probs: row.logprobs, group_id: 0 });
  const golden1 = { advantage: 0.5, metrics: { reward: 1 }, trajectory_id: ids.golden, rollout_id: "roll1" };
  const looks = { role: "assistant", content: null, reasoning_content: "hm", tool_calls: [toolCall] };
  const asked = (...messages: string[]) => messages.map((content, at) => ({ role: at === 0 ? "system" : "user", content }));
  const says = (content: string) => ({ role: "assistant", content });
  assert.deepEqual(rows, [
    { ...of(full.helper), ...golden1, model_version: 1, prompt: asked("help", "count"), completion: [says("two")] },
    {
      ...{ ...of(full.main), ...golden1, model_version: 1, prompt: start },
      completion: [
        ...[looks, { role: "tool", tool_call_id: "t1", content: "a.txt" }, says("found")],
        ...[{ role: "user", content: "summarise" }, says("sum up")],
      ],
    },
    { ...of(full.after), ...golden1, model_version: 2, prompt: asked("be good", "sum up", "go on"), completion: [says("done")] },
    {
      ...{ ...of(full.sibling), advantage: -0.5, metrics: { reward: 0 }, trajectory_id: ids.sibling, rollout_id: "roll2" },
      ...{ model_version: 1, prompt: start, completion: [says("no")] },
    },
  ]);
});

test("prime-rl: full length, with temperature and advantage for each token", async () => {
  const own = { advantage: "dr_grpo", env_name: "repairs" };
  const { rows } = await exported(exporterNamed("prime-rl"), [golden, brother], { own });
  const of = (row: typeof full.main, worth: number) => ({
    token_ids: row.ids,
    mask: row.mask.map(Boolean),
    logprobs: row.logprobs,
    temperatures: row.ids.map(() => 1),
    env_name: "repairs",
    advantages: row.mask.map((mask) => (mask === 1 ? worth : 0)),
  });
  assert.deepEqual(rows, [of(full.helper, 0.5), of(full.main, 0.5), of(full.after, 0.5), of(full.sibling, -0.5)]);
});

test("trl-sft: labels where the policy spoke, full length", async () => {
  const { rows } = await written("trl-sft");
  const of = ({ ids: input_ids, mask }: typeof full.main) => ({
    input_ids,
    labels: input_ids.map((id, at) => (mask[at] === 1 ? id : -100)),
    group_id: "grp",
  });
  const golden1 = { reward: 1, trajectory_id: ids.golden, rollout_id: "roll1" };
  assert.deepEqual(rows, [
    { ...of(full.helper), ...golden1 },
    { ...of(full.main), ...golden1 },
    { ...of(full.after), ...golden1 },
    { ...of(full.sibling), reward: 0, trajectory_id: ids.sibling, rollout_id: "roll2" },
  ]);
});

test("verifiers: a chain of messages a row, compact logprobs", async () => {
  const { rows } = await written("verifiers");
  assert.equal(rows.length, 2);
  type Node = { parent: number | null; sampled: boolean; token_ids: number[]; mask: boolean[]; logprobs: number[]; message: unknown };
  const nodes = (rows[0] as { nodes: Node[] }).nodes;
  const branches = nodes.flatMap((_, leaf) => (nodes.some(({ parent }) => parent === leaf) ? [] : [pathTo(nodes, leaf)]));
  const spread = branches.map((path) => ({
    ids: path.flatMap((node) => node.token_ids),
    mask: path.flatMap((node) => node.mask.map(Number)),
    logprobs: path.flatMap((node) => {
      const known = [...node.logprobs];
      return node.mask.map((mask) => (mask ? known.shift() : 0));
    }),
  }));
  assert.deepEqual(spread, [full.helper, full.main, full.after]);
  assert.deepEqual(
    branches[1]?.map(({ message, sampled }) => [sampled, message]),
    [
      [false, start[0]],
      [false, start[1]],
      [
        true,
        {
          role: "assistant",
          content: null,
          reasoning_content: "hm",
          tool_calls: [{ id: "t1", type: "function", name: "bash", arguments: '{"cmd":"ls"}' }],
        },
      ],
      [false, { role: "tool", content: "a.txt", tool_call_id: "t1" }],
      [true, { role: "assistant", content: "found" }],
      [false, { role: "user", content: "summarise" }],
      [true, { role: "assistant", content: "sum up" }],
    ],
  );
  const { nodes: _, calls, ...rest } = rows[0] as Record<string, unknown>;
  assert.deepEqual(rest, {
    id: ids.golden,
    task: { type: "alidade", data: { id: "task" } },
    agent: { config: { harness: { id: "alidade" } } },
    rewards: { reward: { score: 1, weight: 1 } },
    metrics: { tests: 0.5, style: null },
    info: {
      alidade: {
        session_id: "sesgolden",
        rollout_id: "roll1",
        group_id: "grp",
        sample_index: 0,
        harness: { name: null, version: null, config_hash: null },
      },
    },
    is_completed: true,
    ok: true,
    stop_condition: null,
  });
  assert.deepEqual(
    (calls as { node: number; finish_reason: string; usage: unknown }[]).map(({ node, usage }) => [nodes[node]?.sampled, usage]),
    [
      [7, 2],
      [9, 7],
      [20, 2],
      [26, 3],
      [13, 2],
    ].map(([prompt_tokens, completion_tokens]) => [
      true,
      { prompt_tokens, completion_tokens, cached_input_tokens: null, reasoning_tokens: null },
    ]),
  );
});

function pathTo<Node extends { parent: number | null }>(nodes: Node[], leaf: number): Node[] {
  const path: Node[] = [];
  for (let at: number | null = leaf; at !== null; at = path[0]?.parent ?? null) path.unshift(nodes[at] as Node);
  return path;
}

test("nemo-gym: items, the last of each turn with its tokens", async () => {
  const { rows } = await written("nemo-gym");
  assert.equal(rows.length, 2);
  const turns = mainTurns.map((turn) => ({
    prompt_token_ids: turn.prompt,
    generation_token_ids: turn.completion,
    generation_log_probs: turn.logprobs,
  }));
  const tools = [{ type: "function", ...goldenTools[0], strict: null }].map(({ kind: _, ...tool }: Record<string, unknown>) => tool);
  const says = (text: string) => ({
    type: "message",
    role: "assistant",
    status: "completed",
    content: [{ type: "output_text", text, annotations: [] }],
  });
  assert.deepEqual(rows[0], {
    responses_create_params: {
      input: start.map((message) => ({ type: "message", ...message })),
      tools,
      parallel_tool_calls: true,
    },
    response: {
      id: ids.golden,
      created_at: 1.03,
      model: "m",
      object: "response",
      parallel_tool_calls: true,
      tool_choice: "auto",
      tools,
      output: [
        { type: "reasoning", id: "item_0", summary: [{ type: "summary_text", text: "hm" }] },
        {
          ...{ type: "function_call", id: "t1", call_id: "t1", name: "bash", arguments: '{"cmd":"ls"}', status: "completed" },
          ...turns[0],
        },
        { type: "function_call_output", call_id: "t1", output: "a.txt" },
        { id: "item_3", ...says("found"), ...turns[1] },
        { type: "message", role: "user", content: "summarise" },
        { id: "item_5", ...says("sum up"), ...turns[2] },
      ],
    },
    reward: 1,
    reward_components: { tests: 0.5 },
    instance_config: { mask_sample: false },
    mask_sample: false,
    _ng_task_index: 0,
    _ng_rollout_index: 0,
    alidade: { trajectory_id: ids.golden, rollout_id: "roll1", group_id: "grp", agent: "main" },
  });
});

test("nemo-rl: what came in and what was generated, one after the other", async () => {
  const { rows } = await written("nemo-rl");
  const came = [main.prompt, [26, 27, 2, 16], [13, 29, 2, 16]];
  const about = (trajectory_id: string, rollout_id: string) => ({
    extra_env_info: { trajectory_id, rollout_id, group_id: "grp", group_index: 0, agent: "main" },
    loss_multiplier: 1,
    task_name: null,
  });
  const log = (turns: { completion: number[]; logprobs: number[] }[], before: number[][]) =>
    turns.flatMap(({ completion, logprobs }, at) => [
      { role: "user", content: "", token_ids: before[at] },
      { role: "assistant", content: "", token_ids: completion, generation_logprobs: logprobs },
    ]);
  assert.deepEqual(rows, [
    { message_log: log(mainTurns, came), length: 9, total_reward: 1, idx: 0, ...about(ids.golden, "roll1") },
    {
      message_log: log([{ completion: sibling.response, logprobs: sibling.logprobs }], [sibling.prompt]),
      ...{ length: 9, total_reward: 0, idx: 1, ...about(ids.sibling, "roll2") },
    },
  ]);
});
