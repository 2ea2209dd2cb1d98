/**
 * The session log: one append-only JSONL file per session, one entry per line, in the order of events. It is the only
 * source: the match, restore and in-flight tables and the trajectory are rebuilt from it, and our answers are a pure
 * function of it. A torn last line is ignored.
 *
 * opened, (tool_server)*, (call_begun, (tried)+, call_finished, (decoded)?, answered, (replayed)*)*,
 * (tool_begun, tool_finished)*, sealed, rewarded*
 *
 * A session that begins with a replay has `compared` beside each replayed call, and `replay_ended` behind the last one. One
 * whose process died has `resumed` where a later process goes on, also behind `sealed`, and is replayed from there.
 */
import { z } from "zod";
import { Time } from "./log/time.ts";
import { RoutingReason, RoutingRecord, SupportReason, SupportRecord } from "./log/token-numbers.ts";
import { ToolBegun, ToolFinished, ToolServerSeen } from "./log/tool-entries.ts";
import { FinishReason, JsonObject, Message, Prompt, Sampling, Tool, ToolChoice, Usage } from "./message.ts";
import { Policy } from "./policy.ts";
import { renderCauses } from "./reasons/calls.ts";
import { wordsOf } from "./reasons/meaning.ts";
import { RewardComponent } from "./reward-component.ts";
import { SampledToken } from "./sampled-token.ts";
import { Budgets, RequestClass, SessionSpec } from "./session-spec.ts";
import { recordVersions } from "./versions/record-versions.ts";

export const logSchemaVersion = recordVersions.log.now;

/**
 * A list, stored as its new items after the first `base_len` items of the base call's list. That base list is the base
 * call's own input and its output: prompt ids ‖ sampled ids, or input messages ‖ [its message] where it has one. A growing
 * conversation thus stores every message and token once. The base call is always earlier in the log.
 */
const delta = <T extends z.ZodType>(list: T) =>
  z.strictObject({ base_call_id: z.string().nullable(), base_len: z.number().int().nonnegative(), new: list });

/** A call has tens of thousands of these, each checked before it is written: one loop takes a fiftieth of a schema's time. */
const Integers = z.custom<number[]>((value) => Array.isArray(value) && value.every(Number.isSafeInteger), "expected a list of integers");
const Logprobs = z.custom<(number | null)[]>(
  (value) => Array.isArray(value) && value.every((one) => one === null || Number.isFinite(one)),
  "expected a list of numbers and nulls",
);

/** How an assistant message was put back to what we emitted, and by which evidence. */
export const Restored = z.strictObject({
  message_index: z.number().int(),
  from_call_id: z.string(),
  /** `reference`: the request named the call, and the record supplied the message. */
  evidence: z.enum(["tool_call_id", "carrier", "content", "reference"]),
  /** identical: nothing differed. restored: equal in meaning, put back. edited: recognised, and left as sent. */
  status: z.enum(["identical", "restored", "edited"]),
  /** What differed: arguments, text, ids, reasoning. */
  differences: z.array(z.string()),
});
export type Restored = z.infer<typeof Restored>;

export const ErrorRecord = z.strictObject({
  code: z.string(),
  message: z.string(),
  status: z.number().int().nullable().default(null),
  /** Of `budget_spent`: which one. */
  budget: Budgets.keyof().optional(),
});
export type ErrorRecord = z.infer<typeof ErrorRecord>;

export const Opened = z.strictObject({
  type: z.literal("opened"),
  schema_version: z.literal(logSchemaVersion),
  time: Time,
  session_id: z.string(),
  key_hash: z.string(),
  spec: SessionSpec,
  alidade_version: z.string(),
});

/** A tool list, once a session; calls name it by its hash. */
export const ToolsSeen = z.strictObject({ type: z.literal("tools"), time: Time, tools_hash: z.string(), tools: z.array(Tool) });

/** Role -> the role that its turns are sent under, because the engine's template does not print the first one. */
const RoleMapping = z.record(z.string(), z.string());

/** Parts of a request that are not passed to the engine: a tool choice, strict tools by name. */
export const Withheld = z.strictObject({ tool_choice: ToolChoice.optional(), strict: z.array(z.string()).optional() });

export const CallBegun = z.strictObject({
  type: z.literal("call_begun"),
  time: Time,
  call_id: z.string(),
  /** 0-based order in which the session's calls were begun. */
  ordinal: z.number().int(),
  dialect: z.string(),
  agent: z.string().describe("`main`, or the harness's own id of a sub-agent"),
  request_class: RequestClass,
  labels: z.record(z.string(), z.string()),
  model: z.string(),
  stream: z.boolean(),
  /** The conversation as the engine gets it: after restore. */
  messages: delta(z.array(Message)),
  /** The raw prompt of a request without messages. */
  prompt: Prompt.optional(),
  /** Identity of the request for match (proxy/restore/fingerprint.ts), without volatile parameters. */
  fingerprint: z.string(),
  /** In the log without the first `restored_before` of the list of `messages.base_call_id` (see restored-turns.ts). */
  restored: z.array(Restored),
  restored_before: z.number().int().positive().optional(),
  /** The call that sampled the last restored assistant turn: the parent by recorded identity. */
  parent_call_id: z.string().nullable(),
  /** The failed call that this one repeats: the same request, perhaps to another model, ended in an error before. */
  retry_of: z.string().nullable(),
  tools_hash: z.string().nullable(),
  /** As the engine gets it. */
  tool_choice: ToolChoice.nullable(),
  /** Absent: everything was passed on. For parameters compare the two fields below. */
  withheld: Withheld.optional(),
  /**
   * Names of tools and fields of the request that no engine gets. Absent: none, or an older release wrote it, which has them
   * in `native` (`omitted_tools`, `omitted_items`, `omitted_blocks`, `omitted_parts`).
   */
  omitted: z.array(z.string()).optional(),
  requested_sampling: Sampling,
  effective_sampling: Sampling,
  policy: Policy.nullable(),
  role_mapping: RoleMapping.default({}),
  native: JsonObject,
});

/** Engines with equal fingerprints render and tokenise alike; null where the engine could not be probed. */
export const EngineFingerprints = z.strictObject({ template: z.string().nullable(), tokenizer: z.string().nullable() });
export type EngineFingerprints = z.infer<typeof EngineFingerprints>;

/** Time that no budget counts: the call waited at a closed fence, or was frozen at its engine. */
export const Pause = z.strictObject({ from: Time, to: Time });
export type Pause = z.infer<typeof Pause>;

/** Sampled tokens `start` (included) to `end` (excluded; null: the last) come from the weights of this name, as the engine reports. */
export const WeightSpan = z.strictObject({
  version: z.string(),
  start: z.number().int().nonnegative(),
  end: z.number().int().nullable(),
});

/**
 * The name of the weights, held against the engine's own word for them. unchecked: it has none, could not be asked, or a
 * route names other weights than its engine, such as an adapter's: the name is the operator's word alone.
 */
export const PolicyCheck = z.enum(["agrees", "differs", "unchecked"]);
export type PolicyCheck = z.infer<typeof PolicyCheck>;

/** One try at an engine, written when it ends. */
export const Tried = z.strictObject({
  type: z.literal("tried"),
  time: Time,
  call_id: z.string(),
  try: z.number().int().positive(),
  /** Its URL. */
  engine: z.string(),
  engine_name: z.string().nullable().default(null),
  /** The policy that the engine had when the try began: a call may have waited for a weight update after it was begun. */
  policy: Policy.nullable(),
  /** Absent where there is no policy. */
  policy_check: PolicyCheck.optional(),
  /** The model or engine is not of the session's policy: its samples are never trained. */
  other_policy: z.literal(true).optional(),
  /** A replay copied it from a record. So it does not pin the session to the record's policy. */
  replayed: z.literal(true).optional(),
  /** Hashes of the engine's template and tokenizer. Tokens of two tokenizers are never one sequence. */
  fingerprints: EngineFingerprints.nullable().default(null),
  /** Number of experts of its model. Absent: the model has none, or the number is unknown. */
  experts: z.number().int().positive().optional(),
  /** This engine's; the begun call has that of the engine that was chosen first. */
  role_mapping: RoleMapping,
  started: Time,
  first_token: Time.nullable(),
  /** The engine's; null where it gave no answer. */
  status: z.number().int().nullable(),
  error: ErrorRecord.nullable(),
  /**
   * Of a try that failed: false where nothing can have been sampled for it (no byte left, or the engine's answer proves
   * it). Absent: it did not fail, or an older release wrote it.
   */
  may_have_sampled: z.boolean().optional(),
});

export const LogprobSemantics = z.strictObject({
  /** raw: log-softmax of the logits. processed: after temperature and truncation. null: there are none, or their kind is unknown. */
  kind: z.enum(["raw", "processed"]).nullable(),
  /** A grammar restricted the tokens. */
  grammar: z.boolean(),
  /**
   * masked: the logprobs hold under the grammar's mask (a forced token has 0.0). unmasked: they are the model's own. null:
   * unknown. Absent without a grammar.
   */
  grammar_logprobs: z.enum(["masked", "unmasked"]).nullish(),
});

export const RenderCause = z.enum(wordsOf(renderCauses));
export type RenderCause = z.infer<typeof RenderCause>;

/** How a call's prompt was made: an earlier call's tokens with new ones appended, or the messages rendered by the engine. */
export const ContinuityRecord = z.discriminatedUnion("mode", [
  z.strictObject({
    mode: z.literal("continued"),
    from_call_id: z.string(),
    /**
     * `kept`: tokens of that call (prompt and sample). `appended`: the tokens after them, which close its turn and hold the
     * new messages.
     */
    kept: z.number().int(),
    appended: z.number().int(),
    /** The earlier turn was cut off (length, a stop string), so the template writes its whole close. */
    closed_for_it: z.boolean().default(false),
  }),
  z.strictObject({ mode: z.literal("rendered"), cause: RenderCause }),
  /** The very ids of another rollout's prompt, of which this call is a sample beside that rollout's own. */
  z.strictObject({ mode: z.literal("recorded"), from_session_id: z.string(), from_call_id: z.string(), kept: z.number().int() }),
]);
export type ContinuityRecord = z.infer<typeof ContinuityRecord>;

/**
 * Sampled tokens from `start` to before the next part are of the try with the number `try`, and so of its policy. A fence
 * interrupted it behind them. `dropped`: tokens behind its part that had come too.
 */
export const SamplePart = z.strictObject({
  start: z.number().int().nonnegative(),
  try: z.number().int().positive(),
  dropped: z.number().int().nonnegative(),
});
export type SamplePart = z.infer<typeof SamplePart>;

/** A picture of a call's prompt: its bytes, and where its pads stand. */
export const PromptPicture = z.strictObject({
  sha256: z.string(),
  start: z.number().int().nonnegative(),
  length: z.number().int().positive(),
});
export type PromptPicture = z.infer<typeof PromptPicture>;

export const CallFinished = z.strictObject({
  type: z.literal("call_finished"),
  time: Time,
  call_id: z.string(),
  /** The prompt ids that the engine read; null where it gave none. */
  prompt_ids: delta(Integers).nullable(),
  /** The pictures of the prompt, in their order, as the engine told their places. Absent: it has none, or they were not told. */
  media: z.array(PromptPicture).optional(),
  /** The sampled ids with the stop token; null where the engine gave none. */
  sampled_ids: Integers.nullable(),
  /** One logprob for each sampled id, in nats; null for a missing one. The whole list is null where the engine gave none. */
  logprobs: Logprobs.nullable(),
  logprob_semantics: LogprobSemantics,
  /** Absent: the log does not have it. */
  routing: RoutingRecord.optional(),
  /** Why `routing` is absent. Absent itself: `routing` is there, the model has no experts, or an older release wrote the log. */
  routing_missing: RoutingReason.optional(),
  /** With it, `logprobs` are those over the kept tokens. Absent: the log does not have it. */
  support: SupportRecord.optional(),
  /** Why `support` is absent. Absent itself: `support` is there, nothing was cut, or an older release wrote the log. */
  support_missing: SupportReason.optional(),
  /** One for each sampled id, for the answer. Absent: the request did not ask for them, or the engine did not tell them all. */
  tokens: z.array(SampledToken).optional(),
  /** Why there are no ids or no logprobs. */
  missing: z.string().nullable(),
  message: Message.nullable(),
  finish_reason: FinishReason,
  stop: z.union([z.string(), z.number()]).nullable(),
  usage: Usage,
  /** The engine's policy when the generation ended. */
  policy: Policy.nullable(),
  /** The policy changed during the generation, even if it changed back. Absent: it did not. */
  policy_changed: z.literal(true).optional(),
  /**
   * Sampled tokens that had come when the engine was held for the update under which the policy first changed: they are of
   * the policy at the start. Absent: none had, or the change came outside of a hold.
   */
  tokens_before_hold: z.number().int().positive().optional(),
  /** In order. Absent: one try sampled it all. */
  parts: z.array(SamplePart).optional(),
  weights: z.array(WeightSpan).optional(),
  pauses: z.array(Pause).optional(),
  /** Absent in sessions without continuity. */
  continuity: ContinuityRecord.optional(),
  /** The call of another rollout that sampled this turn; the turn was replayed from its record, and is trained there. */
  replayed_from: z.string().optional(),
  /** What the clock of the replayed record said when this call was begun, and when it had ended. An older release left it out. */
  recorded_ms: z.strictObject({ begun: z.number().nonnegative(), ended: z.number().nonnegative() }).optional(),
  engine: z.string().nullable(),
  engine_model: z.string().nullable(),
  error: ErrorRecord.nullable(),
});

/**
 * The first difference between a call's prompt and its parent's prompt and sampled ids, decoded by the engine's tokenizer.
 * Decoding begins at token `at`, a little before the difference.
 */
export const Decoded = z.strictObject({
  type: z.literal("decoded"),
  time: Time,
  call_id: z.string(),
  parent_call_id: z.string(),
  position: z.number().int(),
  at: z.number().int(),
  parent_text: z.string(),
  child_text: z.string(),
  /** The child's text starts with the parent's: the same words in other tokens. */
  same_text: z.boolean(),
});

export const Answered = z.strictObject({
  type: z.literal("answered"),
  time: Time,
  call_id: z.string(),
  /** complete: the terminal event was sent. cut: the client left before. error: the answer was an error. */
  delivery: z.enum(["complete", "cut", "error"]),
  status: z.number().int(),
  /** What its client was told instead, where that is not the call's own failure: a turn that could not be written down, or not said in the dialect. */
  error: ErrorRecord.optional(),
});

/** A stored turn that was sent again to a client that had not received it. No budget counts it. */
export const Replayed = z.strictObject({
  type: z.literal("replayed"),
  time: Time,
  call_id: z.string(),
  delivery: z.enum(["complete", "cut"]),
});

/**
 * What a replayed request has other than the recorded one. equal: nothing. values: digits, durations, ids, dates, paths below
 * temporary folders. words: other text. structure: another tool call, or another number of results or messages.
 */
export const ReplayClass = z.enum(["equal", "values", "words", "structure"]);
export type ReplayClass = z.infer<typeof ReplayClass>;

/** A request that came at a recorded place, held against the record. */
export const Compared = z.strictObject({
  type: z.literal("compared"),
  time: Time,
  /** The recorded call at this place. null: the record has no such request. */
  call_id: z.string().nullable(),
  class: ReplayClass,
  /** The first difference of this class; null where there is none. */
  difference: z.string().nullable(),
});
export type Compared = z.infer<typeof Compared>;

/** The replayed part of a session is over: what follows is sampled, or nothing follows. */
export const ReplayEnded = z.strictObject({
  type: z.literal("replay_ended"),
  time: Time,
  /** arrived: all answers were given. diverged: the harness asked what the record does not have. */
  how: z.enum(["arrived", "diverged"]),
  /** The calls that were answered from the record. */
  turns: z.number().int().nonnegative(),
  /** Which turn it left the record at, and by what; null where it arrived. */
  difference: z.string().nullable(),
  /** Why answers were given out of the recorded order; left out: they were not. */
  out_of_order: z.string().optional(),
  /** Milliseconds from the first request to here, in the record and in the replay: the session's clock goes by the record. */
  recorded_ms: z.number().nonnegative(),
  played_ms: z.number().nonnegative(),
});
export type ReplayEnded = z.infer<typeof ReplayEnded>;

/**
 * The process that ran the session died, and another one goes on with it: a fresh sandbox, the same harness, and the answers
 * of this log up to here. A seal before it holds no more.
 */
export const Resumed = z.strictObject({
  type: z.literal("resumed"),
  time: Time,
  /** The attempt at the rollout that the session is from here on. */
  attempt: z.number().int().positive(),
  /** Finished calls that are answered from the log, and the tokens that were sampled for them. */
  calls: z.number().int().nonnegative(),
  sampled_tokens: z.number().int().nonnegative(),
  /** The rollout that the session is of from here on; left out: that of before. */
  place: z.strictObject({ rollout_id: z.string(), group_id: z.string(), sample_index: z.number().int() }).optional(),
});
export type Resumed = z.infer<typeof Resumed>;

/** Its spec names the rollout that went on with the session last. */
export function openedAs(opened: Opened, { place }: Pick<Resumed, "place">): Opened {
  return { ...opened, spec: { ...opened.spec, ...place } };
}

/** Facts that identify a request's body without its content. */
const BodySeen = z.strictObject({
  /** Bytes declared, or read. */
  bytes: z.number().int().nonnegative(),
  /** Hash of the whole body; null where it was not read to its end, or was refused as too much. */
  sha256: z.string().nullable(),
});
export type BodySeen = z.infer<typeof BodySeen>;

/** Requests refused before they became a call (a spent budget, a sealed session, a bad body). */
export const Refused = z.strictObject({
  type: z.literal("refused"),
  time: Time,
  dialect: z.string(),
  body: BodySeen,
  /** Absent where the request could not be read. */
  request_class: RequestClass.optional(),
  /** The call whose answer is its last known assistant turn. Absent where there is none. */
  parent_call_id: z.string().optional(),
  error: ErrorRecord,
});

/** A conversation that a harness opened for later references, with its first messages. */
export const ConversationOpened = z.strictObject({
  type: z.literal("conversation"),
  time: Time,
  conversation_id: z.string(),
  messages: z.array(Message),
  metadata: JsonObject,
});

/** The harness deleted an answer or a conversation. It stays in the log; requests cannot refer to it. */
export const Deleted = z.strictObject({ type: z.literal("deleted"), time: Time, id: z.string() });

export const Sealed = z.strictObject({ type: z.literal("sealed"), time: Time, reason: z.string() });

export const Rewarded = z.strictObject({
  type: z.literal("rewarded"),
  time: Time,
  revision: z.number().int(),
  reward: z.number().nullable(),
  /** The rollout's, by name. */
  components: z.record(z.string(), z.number().nullable()).default({}),
  /** Those of any scope. */
  scoped_components: z.array(RewardComponent).optional(),
});

export const LogEntry = z.discriminatedUnion("type", [
  Opened,
  ToolsSeen,
  CallBegun,
  Tried,
  CallFinished,
  Decoded,
  Answered,
  Replayed,
  Compared,
  ReplayEnded,
  Resumed,
  Refused,
  ConversationOpened,
  Deleted,
  ToolServerSeen,
  ToolBegun,
  ToolFinished,
  Sealed,
  Rewarded,
]);
export type LogEntry = z.infer<typeof LogEntry>;

/** A log line that cannot be read. It is only reported, never written. */
export type DamagedLine = {
  type: "damaged";
  /** The entry's type, where the damaged line still shows it. */
  entry_type: string | null;
  call_id: string | null;
  /** The file, the line and the fault. */
  reason: string;
};

/** One line as a reader returns it. A damaged line loses its call, never the session. */
export type LogLine = LogEntry | DamagedLine;
export type Opened = z.infer<typeof Opened>;
export type CallBegun = z.infer<typeof CallBegun>;
export type CallFinished = z.infer<typeof CallFinished>;
export type WeightSpan = z.infer<typeof WeightSpan>;
export type Tried = z.infer<typeof Tried>;
export type ConversationOpened = z.infer<typeof ConversationOpened>;
export type Answered = z.infer<typeof Answered>;
export type Replayed = z.infer<typeof Replayed>;
export type Refused = z.infer<typeof Refused>;
export type Decoded = z.infer<typeof Decoded>;
export type LogprobSemantics = z.infer<typeof LogprobSemantics>;
