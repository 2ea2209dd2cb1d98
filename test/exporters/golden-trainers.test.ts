/** The golden session in the formats that each trainer reads by an adapter of its own; the others: `golden.test.ts`. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Trajectory } from "../../base/schema/trajectory.ts";
import { exporterNamed } from "../../exporters/registry.ts";
import { reconstruct } from "../../reconstruct/index.ts";
import { exported } from "../fakes/records/exported.ts";
import { after, full, helper, main, mainTurns, sibling } from "../fakes/records/golden-rows.ts";
import { goldenSibling, goldenTrajectory } from "../fakes/records/golden-session.ts";
import { assistant, LogBuilder, toolCall, toolResult, user } from "../fakes/records/log-builder.ts";

const golden = goldenTrajectory();
const brother = goldenSibling();

const written = async (format: string, trajectories: Trajectory[] = [golden, brother], own: Record<string, unknown> = {}) =>
  exported(exporterNamed(format), trajectories, { own });

const undelivered = { undelivered: 1 };
const ids = {
  golden: { rollout_id: "roll1", trajectory_id: golden.trajectory_id },
  sibling: { rollout_id: "roll2", trajectory_id: brother.trajectory_id },
};
const call = (number: number): string => `call${String(number).padStart(20, "0")}`;

/** Which call said what, under which weights: the sub-agent's, the main agent's three, the one after the compaction. */
const turns = {
  helper: { call_id: call(2), prompt: helper.prompt, completion: helper.response, logprobs: helper.logprobs, agent: "helper", step: 1 },
  main: mainTurns.map((turn, at) => ({ ...turn, call_id: call([1, 3, 4][at] as number), agent: "main", step: at === 0 ? 1 : 2 })),
  after: { call_id: call(5), prompt: after.prompt, completion: after.response, logprobs: after.logprobs, agent: "main", step: 2 },
  sibling: { call_id: call(0), prompt: sibling.prompt, completion: sibling.response, logprobs: sibling.logprobs, agent: "main", step: 1 },
};
type GoldenTurn = typeof turns.helper;
const rowsOfGolden: GoldenTurn[][] = [[turns.helper], turns.main, [turns.after]];

test("skyrl: a rollout's rows together, the reward on the last token of the last", async () => {
  const { rows, report } = await written("skyrl");
  assert.deepEqual(report.left_out, undelivered);
  const of = ({ prompt, response, mask, logprobs }: typeof main, repetition_id: number, last: boolean) => ({
    prompt_token_ids: prompt,
    response_ids: response,
    loss_masks: mask,
    rollout_logprobs: logprobs,
    stop_reasons: "stop",
    trajectory_ids: { instance_id: "grp", repetition_id },
    is_last_step: last,
  });
  assert.deepEqual(rows, [
    { ...of(helper, 0, false), rewards: [0, 0] },
    { ...of(main, 0, false), rewards: main.response.map(() => 0) },
    { ...of(after, 0, true), rewards: [0, 1] },
    { ...of(sibling, 1, true), rewards: [0, 0] },
  ]);
});

test("openrlhf: one row a rollout, the spans that the policy said", async () => {
  const { rows, report } = await written("openrlhf");
  assert.deepEqual(report.left_out, { ...undelivered, other_row_of_rollout: 2 });
  const of = ({ ids, logprobs }: typeof full.main) => ({
    ...{ prompt: "fix it", label: "task", images: null, mm_train_inputs: null, truncated: false, extra_logs: {} },
    ...{ observation_tokens: ids, rollout_log_probs: logprobs },
  });
  assert.deepEqual(rows, [
    {
      ...{ ...of(full.main), reward: 1, scores: 1 },
      action_ranges: [
        [9, 16],
        [20, 22],
        [26, 29],
      ],
    },
    { ...of(full.sibling), reward: 0, scores: 0, action_ranges: [[9, 11]] },
  ]);
});

test("areal: full length, the step of the weights on every sampled token", async () => {
  const { rows, report } = await written("areal");
  assert.deepEqual(report.left_out, { ...undelivered, other_row_of_rollout: 2 });
  const of = ({ ids, mask, logprobs }: typeof full.main) => ({ input_ids: ids, loss_mask: mask, logprobs, group_index: 0 });
  const context = (length: number): number[] => new Array<number>(length).fill(-1);
  const mixed = [...context(9), 1, 1, 1, 1, 1, 1, 1, ...context(4), 2, 2, ...context(4), 2, 2, 2];
  assert.deepEqual(rows, [
    { ...of(full.main), versions: mixed, rewards: 1, ...ids.golden },
    { ...of(full.sibling), versions: [...context(9), 1, 1], rewards: 0, ...ids.sibling },
  ]);
});

test("areal: no versions where a step is unknown", async () => {
  const log = new LogBuilder({ group_id: null });
  log.call({ messages: [user("hi")], says: assistant("yes"), policy: { version: "unnumbered", step: null } });
  const { rows } = await written("areal", [reconstruct(log.entries, { reward: 1 })]);
  assert.deepEqual(
    rows.map((row) => row.versions),
    [null],
  );
});

test("tinker: inputs without the last token, everything else about the target", async () => {
  const { rows, report } = await written("tinker");
  assert.deepEqual(report.left_out, undelivered);
  const of = ({ ids, mask, logprobs }: typeof full.main) => ({
    model_input: ids.slice(0, -1),
    loss_fn_inputs: { target_tokens: ids.slice(1), logprobs: logprobs.slice(1), mask: mask.slice(1) },
    group_id: "grp",
  });
  assert.deepEqual(rows, [
    ...[full.helper, full.main, full.after].map((row) => ({ ...of(row), reward: 1, sample_index: 0, ...ids.golden })),
    { ...of(full.sibling), reward: 0, sample_index: 1, ...ids.sibling },
  ]);
});

test("openenv: a turn a call, its mask over prompt and completion", async () => {
  const { rows, report } = await written("openenv");
  assert.deepEqual(report.left_out, undelivered);
  const toTurn = ({ call_id, prompt, completion, logprobs, agent, step }: GoldenTurn) => ({
    node_id: call_id,
    prompt_token_ids: prompt,
    completion_token_ids: completion,
    per_token_logps: logprobs,
    loss_mask: [...prompt.map(() => 0), ...completion.map(() => 1)],
    metadata: { call_id, agent, policy_version: `v${step}`, policy_step: step },
  });
  const of = (said: GoldenTurn[]) => ({ group_id: "grp", training_trace: { schema_version: 1, turns: said.map(toTurn) } });
  assert.deepEqual(rows, [
    { ...of(rowsOfGolden.flat()), reward: 1, sample_index: 0, ...ids.golden },
    { ...of([turns.sibling]), reward: 0, sample_index: 1, ...ids.sibling },
  ]);
});

test("agent-lightning: a triplet a turn, the reward on the rollout", async () => {
  const { rows, report } = await written("agent-lightning");
  assert.deepEqual(report.left_out, undelivered);
  const toTriplet = ({ call_id, prompt, completion, logprobs, step }: GoldenTurn) => ({
    prompt: { token_ids: prompt },
    response: { token_ids: completion, log_probs: logprobs },
    reward: null,
    metadata: { call_id, server: { version: `v${step}` } },
  });
  const of = (said: GoldenTurn[]) => ({ data_id: "grp", step: 0, enqueue_time: 1.01, triplets: said.map(toTriplet) });
  assert.deepEqual(rows, [
    { ...of(rowsOfGolden.flat()), rollout_id: "roll1", sample_idx_in_step: 0, final_reward: 1 },
    { ...of([turns.sibling]), rollout_id: "roll2", sample_idx_in_step: 1, final_reward: 0 },
  ]);
});

test("agent-lightning, openenv and harbor leave out a rollout that trains nothing", async () => {
  for (const format of ["agent-lightning", "openenv", "harbor"]) {
    const { rows, report } = await written(format, [goldenTrajectory({ in_loss: false, in_baseline: true }), brother]);
    assert.equal(rows.length, 1, format);
    assert.deepEqual([report.left_out_rollouts, report.dummy_rows], [{ nothing_trained: 1 }, 0], format);
  }
});

test("harbor: a detail a branch, the main agent's first", async () => {
  const { rows, report } = await written("harbor");
  assert.deepEqual(report.left_out, undelivered);
  const toDetail = (said: GoldenTurn[]) => ({
    prompt_token_ids: said.map((turn) => turn.prompt),
    completion_token_ids: said.map((turn) => turn.completion),
    logprobs: said.map((turn) => turn.logprobs),
    extra: { call_id: said.map((turn) => turn.call_id), policy_version: said.map((turn) => `v${turn.step}`) },
  });
  const result = (said: GoldenTurn[][], counts: [number, number], reward: number, metadata: Record<string, unknown>) => ({
    agent_result: {
      ...{ n_input_tokens: counts[0], n_cache_tokens: null, n_output_tokens: counts[1] },
      rollout_details: said.map(toDetail),
      metadata: { ...metadata, task_id: "task", group_id: "grp" },
    },
    verifier_result: { rewards: { reward } },
  });
  assert.deepEqual(rows, [
    // The turn whose client left was paid for, too.
    result([turns.main, [turns.after], [turns.helper]], [84, 23], 1, { ...ids.golden, sample_index: 0 }),
    result([[turns.sibling]], [9, 2], 0, { ...ids.sibling, sample_index: 1 }),
  ]);
});

test("atif: what a person reads, with the tokens of the turns; the sub-agent inside", async () => {
  const { rows, report } = await written("atif");
  assert.deepEqual(report.left_out, undelivered);
  const time = (milliseconds: number) => ({ timestamp: new Date(milliseconds).toISOString() });
  const said = ({ call_id, prompt, completion, logprobs, step }: GoldenTurn, extra: Record<string, unknown>) => ({
    ...{ source: "agent", model_name: "m", llm_call_count: 1 },
    metrics: {
      ...{ prompt_tokens: prompt.length, completion_tokens: completion.length, extra: { policy_version: `v${step}` } },
      ...{ prompt_token_ids: prompt, completion_token_ids: completion, logprobs },
    },
    extra: { call_id, request_class: "main", outcome: "delivered", match: "exact", ...extra },
  });
  const [first, second, third] = turns.main as [GoldenTurn, GoldenTurn, GoldenTurn];
  const { subagent_trajectories, ...document } = rows[0] as Record<string, unknown>;
  assert.deepEqual(document, {
    schema_version: "ATIF-v1.8",
    session_id: "sesgolden",
    trajectory_id: golden.trajectory_id,
    agent: {
      ...{ name: "main", version: "unknown", model_name: "m", extra: { agent: "main" } },
      tool_definitions: [
        {
          type: "function",
          function: {
            name: "bash",
            description: "runs a command",
            parameters: { type: "object", properties: { cmd: { type: "string" } } },
          },
        },
      ],
    },
    steps: [
      { step_id: 1, ...time(1030), source: "system", message: "be good" },
      { step_id: 2, ...time(1030), source: "user", message: "fix it" },
      {
        ...{ step_id: 3, ...time(1040), message: "", reasoning_content: "hm", ...said(first, { match: "root" }) },
        tool_calls: [{ tool_call_id: "t1", function_name: "bash", arguments: { cmd: "ls" } }],
        observation: { results: [{ source_call_id: "t1", content: "a.txt" }] },
      },
      { step_id: 4, ...time(1080), message: "found", ...said(second, {}) },
      { step_id: 5, ...time(1090), source: "user", message: "summarise" },
      { step_id: 6, ...time(1100), message: "sum up", ...said(third, { request_class: "compaction" }) },
      { step_id: 7, ...time(1110), source: "user", message: "sum up" },
      { step_id: 8, ...time(1110), source: "user", message: "go on" },
      { step_id: 9, ...time(1120), message: "done", ...said(turns.after, { match: "diverged", cause: "compacted" }) },
    ],
    final_metrics: { total_steps: 9, total_prompt_tokens: 68, total_completion_tokens: 14 },
    extra: { reward: 1, status: "graded", rollout_id: "roll1", task_id: "task", group_id: "grp", sample_index: 0 },
  });
  assert.deepEqual(subagent_trajectories, [
    {
      schema_version: "ATIF-v1.8",
      session_id: "sesgolden",
      trajectory_id: `${golden.trajectory_id}/helper`,
      agent: { name: "helper", version: "unknown", model_name: "m", extra: { agent: "helper" } },
      steps: [
        { step_id: 1, ...time(1050), source: "system", message: "help" },
        { step_id: 2, ...time(1050), source: "user", message: "count" },
        { step_id: 3, ...time(1060), message: "two", ...said(turns.helper, { request_class: "sub_agent", match: "root" }) },
      ],
      final_metrics: { total_steps: 3, total_prompt_tokens: 7, total_completion_tokens: 2 },
    },
  ]);
});

test("atif: says version 1.7 on request", async () => {
  const { rows } = await written("atif", [golden], { atif_version: "1.7" });
  assert.equal(rows[0]?.schema_version, "ATIF-v1.7");
  await assert.rejects(written("atif", [golden], { atif_version: "1.6" }), { code: "config_invalid", param: "atif_version" });
});

test("atif: keeps what is no object, marks what was not sampled here, and leaves out title calls", async () => {
  const log = new LogBuilder();
  log.call({ messages: [user("a title please")], says: assistant("Title"), request_class: "title" });
  const edited = assistant("what the harness made of it");
  const asks = assistant(toolCall("t1", '{"cmd": "ls'), toolCall("t1b", "[1]"));
  const start = [user("go"), edited];
  const first = log.call({ messages: start, says: asks });
  const results = [toolResult("t1b", "second"), toolResult("t1", "first"), toolResult("t9", "never asked")];
  log.call({ messages: [...start, asks, ...results], says: assistant("done"), parent: first, logprobs: null });
  const { rows, report } = await written("atif", [reconstruct(log.entries, { reward: null })]);
  assert.deepEqual(report.left_out, { auxiliary: 1, no_logprob: 1 });
  const steps = (rows[0] as { steps: Record<string, unknown>[] }).steps.map(
    ({ step_id, timestamp, metrics, extra, model_name, ...rest }) => ({
      ...rest,
      ids: (metrics as Record<string, unknown> | undefined)?.completion_token_ids !== undefined,
    }),
  );
  const malformed = (tool_call_id: string, raw_arguments: string) => ({
    ...{ tool_call_id, function_name: "bash", arguments: { raw_arguments }, extra: { malformed_arguments: true } },
  });
  assert.deepEqual(steps, [
    { source: "user", message: "go", ids: false },
    { source: "agent", message: "what the harness made of it", is_copied_context: true, ids: false },
    {
      ...{ source: "agent", message: "", llm_call_count: 1, ids: true },
      tool_calls: [malformed("t1", '{"cmd": "ls'), malformed("t1b", "[1]")],
      observation: {
        results: [
          { source_call_id: "t1b", content: "second" },
          { source_call_id: "t1", content: "first" },
        ],
      },
    },
    { source: "system", message: "", observation: { results: [{ content: "never asked" }] }, ids: false },
    { source: "agent", message: "done", llm_call_count: 1, ids: false },
  ]);
  assert.equal((rows[0] as { extra: { reward: unknown } }).extra.reward, null);
});

test("formats without a mask in a turn leave out forced tokens, and keep the others of the turn where they can", async () => {
  const log = new LogBuilder({ group_id: null });
  log.call({ messages: [user("hi")], says: assistant("a b"), logprobs: [-0.5, 0, -0.25], grammar: true });
  const trajectory = reconstruct(log.entries, { reward: 1 });
  const allowed = async (format: string) => exported(exporterNamed(format), [trajectory], { allowGrammar: true });
  const lightning = await allowed("agent-lightning");
  const [row] = lightning.rows as { triplets: { prompt: { token_ids: number[] }; response: { log_probs: number[] } }[] }[];
  assert.deepEqual(
    row?.triplets.map(({ prompt, response }) => [prompt.token_ids.length, response.log_probs]),
    [
      [4, [-0.5]],
      [6, [-0.25]],
    ],
  );
  const openrlhf = (await allowed("openrlhf")).rows[0];
  assert.deepEqual(openrlhf?.action_ranges, [
    [4, 5],
    [6, 7],
  ]);
  const openenv = (await allowed("openenv")).rows[0] as { training_trace: { turns: { loss_mask: number[] }[] } };
  assert.deepEqual(openenv.training_trace.turns[0]?.loss_mask, [0, 0, 0, 0, 1, 0, 1]);
  const atif = await allowed("atif");
  assert.deepEqual(atif.report.left_out, { partly_trained: 1 });
});
