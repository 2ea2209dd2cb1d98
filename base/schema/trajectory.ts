/**
 * The canonical trajectory: the token tree of one session. The tree is a trie over tokens: shared prefixes are there
 * once, and the path from the root to a sampled node is exactly what the engine saw when it sampled it. Nothing that
 * was sampled is left out: what is not trained is here with its reason.
 */
import { z } from "zod";
import { Time } from "./log/time.ts";
import { RoutingReason, SupportReason } from "./log/token-numbers.ts";
import { ResultPart, ToolFailure } from "./log/tool-entries.ts";
import { FinishReason, Message, Sampling, Tool, Usage } from "./message.ts";
import { Policy } from "./policy.ts";
import { callOutcomes, edgeCauses, uncountedReasons } from "./reasons/calls.ts";
import { wordsOf } from "./reasons/meaning.ts";
import { teacherReasons } from "./reasons/teacher.ts";
import { untrainedReasons } from "./reasons/untrained.ts";
import { RewardComponent } from "./reward-component.ts";
import {
  ContinuityRecord,
  EngineFingerprints,
  ErrorRecord,
  LogprobSemantics,
  Pause,
  PolicyCheck,
  PromptPicture,
  Restored,
  WeightSpan,
  Withheld,
} from "./session-log.ts";
import { ForkedFrom, Purpose, RequestClass, TrainClasses } from "./session-spec.ts";
import { isAsParsed } from "./versions/is-as-parsed.ts";
import { recordVersions } from "./versions/record-versions.ts";
import { versioned } from "./versions/versioned.ts";

export const trajectorySchemaVersion = recordVersions.trajectory.now;

export const TrajectoryStatus = z.enum(["graded", "cut", "failed", "cancelled", "recorded"]);

/** The edge from the parent call to this one. `root`: the call has no parent. `unknown`: there are no ids, or they could not be decoded. */
export const EdgeMatch = z.enum(["root", "exact", "same_text", "diverged", "unknown"]);
export type EdgeMatch = z.infer<typeof EdgeMatch>;

/** Why a child's prompt does not continue its parent token for token. */
export const EdgeCause = z.enum(wordsOf(edgeCauses));
export type EdgeCause = z.infer<typeof EdgeCause>;

export const CallOutcome = z.enum(wordsOf(callOutcomes));
export type CallOutcome = z.infer<typeof CallOutcome>;

/** Why sampled tokens are not trained by a trainer that states nothing of itself. */
export const ExclusionReason = z.enum(wordsOf(untrainedReasons));
export type ExclusionReason = z.infer<typeof ExclusionReason>;

export const UncountedReason = z.enum(wordsOf(uncountedReasons));

export const CallRecord = z.strictObject({
  call_id: z.string(),
  ordinal: z.number().int(),
  parent_call_id: z.string().nullable(),
  /** The node that this call's prompt ends with; null where the engine gave no ids or the prompt is empty. */
  prompt_node_id: z.string().nullable(),
  /** Length of the prompt and of the sample in tokens; null where the engine gave no ids. */
  prompt_length: z.number().int().nullable(),
  sampled_length: z.number().int().nullable(),
  /** The pictures of its prompt. Absent: it has none, or the engine did not tell their places. */
  media: z.array(PromptPicture).optional(),
  /** null: `sampled_length`, or the engine's own count in `usage`, is all that it sampled. */
  uncounted: UncountedReason.nullable().default(null),
  match: EdgeMatch,
  cause: EdgeCause.nullable(),
  /** First token position where child and parent differ, with both sides decoded around it. */
  difference: z
    .strictObject({ position: z.number().int(), parent_text: z.string().nullable(), child_text: z.string().nullable() })
    .nullable(),
  outcome: CallOutcome,
  dialect: z.string(),
  agent: z.string(),
  request_class: RequestClass,
  engine: z.string().nullable(),
  /** Which of several engines, and the fingerprints of its template and tokenizer. */
  engine_name: z.string().nullable().default(null),
  fingerprints: EngineFingerprints.nullable().default(null),
  /** Number of experts of the model. Absent: it has none, or the number is unknown. */
  experts: z.number().int().positive().optional(),
  /** `recorded`: `blobs` has the experts that its tokens took; else why not. Absent: the model has no experts, or that is unknown. */
  routing: z.union([z.literal("recorded"), RoutingReason]).optional(),
  /**
   * `recorded`: `blobs` has the tokens that `top_p`, `top_k` and `min_p` kept, and its logprobs are those over them; else why not.
   * Absent: nothing was cut, or an older release recorded it.
   */
  support: z.union([z.literal("recorded"), SupportReason]).optional(),
  engine_model: z.string().nullable(),
  tries: z.array(
    z.strictObject({
      try: z.number().int(),
      engine: z.string(),
      status: z.number().int().nullable(),
      error: ErrorRecord.nullable(),
      may_have_sampled: z.boolean().optional(),
    }),
  ),
  finish_reason: FinishReason.nullable(),
  stop: z.union([z.string(), z.number()]).nullable(),
  requested_sampling: Sampling,
  sampling: Sampling,
  /** Beside parameters. Absent where that is nothing. */
  withheld: Withheld.optional(),
  /** Names of tools and fields of its request that the model did not get (`tool web_search`, `field truncation`). Absent: none. */
  omitted: z.array(z.string()).optional(),
  logprob_semantics: LogprobSemantics,
  missing: z.string().nullable(),
  /** What of this call the session's log holds no more, and why; such a call is not trained. */
  damage: z.string().nullable().default(null),
  /** Sampled by a model that is not the session's policy: a judge, a teacher, other weights that the client named. */
  other_policy: z.boolean().default(false),
  /** `spans` where the engine reports the weights of each token; else empty. */
  policy: z.strictObject({
    start: Policy.nullable(),
    end: Policy.nullable(),
    spans: z.array(WeightSpan).default([]),
    /** Where each part of a sample begins that weight updates interrupted, and the policy that sampled it. Absent: one policy did. */
    parts: z.array(z.strictObject({ start: z.number().int().nonnegative(), policy: Policy.nullable() })).optional(),
    /** How the policy at the start compares with the name that its engine reports; null without a policy. */
    check: PolicyCheck.nullable().default(null),
  }),
  input: z.array(z.string()).describe("message ids, in order"),
  output: z.string().nullable().describe("message id of what was sampled"),
  tools_hash: z.string().nullable(),
  restored: z.array(Restored),
  role_mapping: z.record(z.string(), z.string()).default({}),
  labels: z.record(z.string(), z.string()),
  usage: Usage.nullable(),
  /** How the prompt was made in a session with continuity; null in others. */
  continuity: ContinuityRecord.nullable().default(null),
  /** The call of another rollout that sampled this turn. */
  replayed_from: z.string().nullable().default(null),
  error: ErrorRecord.nullable(),
  times: z.strictObject({ begun: Time, first_token: Time.nullable(), finished: Time.nullable(), answered: Time.nullable() }),
  /** When it waited for an engine, or stood still at one. Absent: never. */
  pauses: z.array(Pause).optional(),
});
export type CallRecord = z.infer<typeof CallRecord>;

/** One tool call to a service of the task, as the relay recorded it. */
export const ToolRun = z.strictObject({
  run_id: z.string(),
  /** Order in which the tool runs began, from 0. */
  ordinal: z.number().int(),
  server: z.string(),
  tool: z.string(),
  arguments: z.string().describe("the text as it came"),
  /** The call in which the model asked for it, and the id of that tool call; null if `unasked`. */
  call_id: z.string().nullable(),
  tool_call_id: z.string().nullable(),
  /** true: a command of the agent asked the relay, not the model. */
  unasked: z.boolean(),
  /**
   * `ok`: the service gave a result. `error`: the service reported an error. `failed`: the service gave no result.
   * `unknown`: the log ends before the result.
   */
  outcome: z.enum(["ok", "error", "failed", "unknown"]),
  failure: ToolFailure.optional(),
  /** Hash of the answer as the harness got it; null if unknown. */
  result_sha256: z.string().nullable(),
  parts: z.array(ResultPart),
  times: z.strictObject({ begun: Time, finished: Time.nullable() }),
});
export type ToolRun = z.infer<typeof ToolRun>;

/** Why a sampled token has no logprob of a teacher. */
export const TeacherReason = z.enum(wordsOf(teacherReasons));
export type TeacherReason = z.infer<typeof TeacherReason>;

/** What a teacher says of a sampled node. */
export const TeacherScore = z.strictObject({
  /** One for each token, in nats, at temperature 1 and without a mask, after the tokens before it on its path; null: not scored. */
  logprobs: z.array(z.number().nullable()),
  /** Why some of them are null; null: none is. */
  reason: TeacherReason.nullable(),
  /** Its likeliest tokens at each place, at most `top_k` of the teacher, the likeliest first; none where it was not scored. Absent: not asked. */
  top: z.strictObject({ ids: z.array(z.array(z.number().int().nonnegative())), logprobs: z.array(z.array(z.number())) }).optional(),
});
export type TeacherScore = z.infer<typeof TeacherScore>;

/** Names the model that scored the sampled tokens (`alidade score`). */
export const Teacher = z.strictObject({
  /** Kind of the engine. */
  engine: z.string(),
  url: z.string().describe("`practice`: the embedded engine"),
  model: z.string(),
  /** The engine's own name of the weights; null: it has none. */
  weight_version: z.string().nullable(),
  /** Does the sampling engine have the same tokenizer? `unknown`: one of them gave no fingerprint. `other`: no token was scored. */
  tokenizer: z.enum(["same", "unknown", "other"]),
  /** How many of its likeliest tokens stand at each place. Absent: none. */
  top_k: z.number().int().positive().optional(),
  /** When the teacher had scored, or was asked for the last time in vain. */
  scored: Time,
});
export type Teacher = z.infer<typeof Teacher>;

/** A run of tokens of one kind. A sampled node belongs to one call; a split keeps that call on both halves. */
export const TreeNode = z.strictObject({
  node_id: z.string(),
  parent_id: z.string().nullable(),
  /** The call that sampled it (sampled), or that first brought it (prompt, observation). */
  call_id: z.string(),
  /** prompt: before anything was sampled on this path; observation: after something was. */
  kind: z.enum(["prompt", "sampled", "observation"]),
  token_ids: z.array(z.number().int()),
  /** Pictures in these tokens: `start` counts from the node's first token. Absent: none. */
  media: z.array(PromptPicture).optional(),
  /** One for each token; null for a missing one; null as a whole on nodes that were not sampled, or had none. */
  logprobs: z.array(z.number().nullable()).nullable(),
  /** One for each token: a grammar left no choice. Absent where there was no grammar. */
  forced: z.array(z.boolean()).optional(),
  /** Only on sampled nodes. Absent: no teacher was asked about it. */
  teacher: TeacherScore.optional(),
  policy_version: z.string().nullable(),
  /**
   * Where not forced: may a trainer that states nothing of itself train these tokens (at a temperature of 1, without a
   * grammar)? `trainable_tokens` of the fidelity report counts them. Older releases asked the record alone, and said
   * true of what was sampled under a grammar, behind an image or at another temperature.
   */
  trainable: z.boolean(),
  reason: ExclusionReason.nullable(),
});
export type TreeNode = z.infer<typeof TreeNode>;

/**
 * Points to numbers about a node's tokens. Their bytes are a file beside the session's log, named by its hash. `routed_experts`: the
 * experts that the tokens took. `sampling_support`: the tokens that the sampling kept at the place of each sampled token.
 */
export const NodeBlob = z.strictObject({
  name: z.string(),
  dtype: z.string(),
  /** Shape of the whole file. For `routed_experts`: tokens, layers, experts per token. For `sampling_support`: counts, ids. */
  shape: z.array(z.number()),
  node_id: z.string(),
  /** Range of the node's tokens: the first index, and the end (excluded). */
  span: z.tuple([z.number().int(), z.number().int()]),
  /** The file's row for the first token of `span`. Absent: 0. */
  row: z.number().int().nonnegative().optional(),
  ref: z.string().describe("SHA-256 of the bytes"),
});
export type NodeBlob = z.infer<typeof NodeBlob>;

export const Trace = z.strictObject({ trace_id: z.string(), leaf_node_id: z.string(), agent: z.string() });
export type Trace = z.infer<typeof Trace>;

export const Fidelity = z.strictObject({
  calls: z.number().int(),
  sampled_tokens: z.number().int().describe("that this rollout sampled and are known; those of `uncounted` calls are more"),
  replayed_tokens: z
    .number()
    .int()
    .optional()
    .describe("sampled by the rollout whose record they come from; absent: none, or an earlier version counted them as sampled"),
  /** Reason -> calls that sampled an unknown number of tokens, which are in no count here. */
  uncounted: z.record(z.string(), z.number().int()).default({}),
  trainable_tokens: z.number().int(),
  excluded: z.record(z.string(), z.number().int()).describe("reason -> sampled tokens; with `trainable_tokens` all of them"),
  by_class: z.record(z.string(), z.number().int()).default({}).describe("kind of call -> sampled tokens that are `auxiliary` for it"),
  matches: z.record(z.string(), z.number().int()).describe("match -> calls"),
  causes: z.record(z.string(), z.number().int()).describe("cause -> calls"),
  outcomes: z.record(z.string(), z.number().int()),
  /** Name -> calls whose model did not get it. */
  omitted: z.record(z.string(), z.number().int()).default({}),
  /** Calls of a session with continuity: `continued`, or the cause of a new rendering -> count. */
  continuity: z.record(z.string(), z.number().int()).default({}),
  /** Tries that another one followed though the engine may have sampled for them: 0 unless `resample_lost` is set. */
  resampled: z.number().int(),
  /** Damaged lines of the session's log. For a call that is lost whole, `sampled_tokens` counts the tokens that are known to be lost. */
  damaged: z
    .array(z.strictObject({ call_id: z.string().nullable(), reason: z.string(), sampled_tokens: z.number().int().nullable() }))
    .default([]),
  /** Sampled tokens with a logprob / sampled tokens; null where nothing was sampled. */
  logprob_coverage: z.number().nullable(),
  policy_versions: z.array(z.string()),
  /** Whether the engine says the same of its weights -> calls whose policy has a name. */
  policy_checks: z.record(z.string(), z.number().int()).default({}),
  /** Tokens in flat rows / tokens in the tree: the trainer's bill for branches; null without tokens. */
  row_inflation: z.number().nullable(),
  /** Hashes that change when engine, template or tools do. */
  fingerprints: z.record(z.string(), z.string()),
});
export type Fidelity = z.infer<typeof Fidelity>;

/** How a replayed part went. */
export const ReplayReport = z.strictObject({
  how: z.enum(["arrived", "diverged"]).nullable().describe("null: the session ended before its replay did"),
  turns: z.number().int().describe("calls that were answered from the record"),
  classes: z.record(z.string(), z.number().int()).describe("class -> requests that were held against the record"),
  difference: z.string().nullable().describe("the first difference of the worst class; null: every request was equal"),
  out_of_order: z.string().optional().describe("why answers were given out of the recorded order; left out: they were not"),
});
export type ReplayReport = z.infer<typeof ReplayReport>;

/** Which attempt at which rollout a trajectory is: what stands at its head, and can be known without the rest. */
export const Attempt = versioned(
  recordVersions.trajectory,
  z.object({
    session_id: z.string(),
    rollout_id: z.string().nullable(),
    attempt: z.number().int(),
    member: z.string().nullable().default(null),
    task: z.object({ id: z.string().nullable() }),
    group: z.object({ id: z.string().nullable() }),
  }),
);
export type Attempt = z.infer<typeof Attempt>;

const TrajectoryFields = z.strictObject({
  schema_version: z.literal(trajectorySchemaVersion),
  trajectory_id: z.string(),
  session_id: z.string(),
  rollout_id: z.string().nullable(),
  attempt: z.number().int(),
  /** Which session of a rollout of several; null where it is the only one, and where they are joined. */
  member: z.string().nullable().default(null),
  /** The agents that were given the task: `main`, or the members that are joined here. The others are their sub-agents. */
  lead_agents: z.array(z.string()).default(["main"]),
  purpose: Purpose,
  /** Its client was hostile input: a turn that it left, or used a part of, is trained all the same. */
  sandboxed: z.boolean().default(false),
  /** Kinds of call that may be trained, as the session's spec says; others are excluded as `auxiliary`. */
  train_classes: TrainClasses,
  status: TrajectoryStatus,
  task: z.strictObject({ id: z.string().nullable(), hash: z.string().nullable(), data_source: z.string().nullable() }),
  group: z.strictObject({ id: z.string().nullable(), size: z.number().int().nullable(), sample_index: z.number().int().nullable() }),
  harness: z.strictObject({ name: z.string().nullable(), version: z.string().nullable(), config_hash: z.string().nullable() }),
  /** The session's, as they were given. */
  labels: z.record(z.string(), z.string()).default({}),
  forked_from: ForkedFrom.nullable().default(null),
  /** null: no call of it was answered from a record. */
  replay: ReplayReport.nullable().default(null),
  /** Where processes went on with it whose earlier one had died. `sampled_tokens`: of the calls that were not sampled again. */
  resumed: z.array(z.strictObject({ attempt: z.number().int(), calls: z.number().int(), sampled_tokens: z.number().int() })).default([]),
  stop_reason: z.string().nullable(),
  /** Who scored the sampled nodes; a later teacher takes its place. Absent: none did. */
  teacher: Teacher.optional(),
  in_loss: z.boolean(),
  in_baseline: z.boolean(),
  mask_reason: z.string().nullable(),
  reward: z.number().nullable(),
  reward_components: z.array(RewardComponent),
  calls: z.array(CallRecord),
  /** In the order in which they began. Absent: the task has no tool servers. */
  tool_runs: z.array(ToolRun).optional(),
  messages: z.record(z.string(), Message),
  tools: z.record(z.string(), z.array(Tool)),
  nodes: z.array(TreeNode),
  traces: z.array(Trace),
  blobs: z.array(NodeBlob),
  fidelity: Fidelity,
});
export const Trajectory = versioned(recordVersions.trajectory, TrajectoryFields);
export type Trajectory = z.infer<typeof Trajectory>;

const isPlainTrajectory = isAsParsed(TrajectoryFields);

/** As `Trajectory.parse` does, of what `JSON.parse` returned: faster where nothing is to be changed. */
export function readTrajectory(value: unknown): Trajectory {
  return isPlainTrajectory(value) ? value : Trajectory.parse(value);
}
