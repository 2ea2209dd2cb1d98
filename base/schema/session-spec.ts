/** What a session is: given when it is opened and never changed. */
import { z } from "zod";
import { Sampling } from "./message.ts";
import { Policy } from "./policy.ts";

/** `judge`: a session of a grader that asks a model. */
export const Purpose = z.enum(["train", "eval", "live", "judge"]);
export type Purpose = z.infer<typeof Purpose>;

/** What a policy is measured by, and what measures it, is never trained. */
export function isNeverTrained(purpose: Purpose): boolean {
  return purpose === "eval" || purpose === "judge";
}

export const Budgets = z.strictObject({
  max_turns: z.number().int().positive().optional().describe("calls that may be begun (replayed and joined ones are free)"),
  max_prompt_tokens: z.number().int().positive().optional().describe("prompt tokens over all calls"),
  max_sampled_tokens: z.number().int().positive().optional().describe("sampled tokens over all calls"),
  max_wall_seconds: z.number().positive().optional().describe("seconds from the first call"),
  max_concurrent_calls: z.number().int().positive().optional().describe("calls in flight at once"),
  max_log_bytes: z
    .number()
    .int()
    .positive()
    .optional()
    .describe(
      "bytes of the session's log, and of its pictures; 256 MiB in a sandbox (two hundred screenshots, or the ids of several million tokens)",
    ),
});
export type Budgets = z.infer<typeof Budgets>;

export const RequestClass = z.enum(["main", "title", "topic", "summary", "compaction", "quota", "check", "memory", "sub_agent", "unknown"]);
export type RequestClass = z.infer<typeof RequestClass>;

/** The task's own work, and the summaries that it continues from. All other kinds are about the session. */
export const workClasses: readonly RequestClass[] = ["main", "sub_agent", "compaction", "summary", "unknown"];

/**
 * Kinds of call that are trained; by default those of the task's work. Side calls (a title, a topic, a check for loops)
 * would learn noise from the task's reward.
 */
export const TrainClasses = z.array(RequestClass).default([...workClasses]);

export const Restore = z.enum(["serialisation", "full", "off"]).default("serialisation");
export const ContinuityMode = z.enum(["auto", "off"]).default("auto");

/**
 * The options of a session that an operator may set. A new option needs a field here, and code that reads it. The rest follows from
 * the field: the key in the configuration and in `POST /sessions`, and the row in docs/configuration.md. A field with one value is
 * also a flag of `serve`, `record` and `run`.
 */
export const SessionOptions = z.strictObject({
  purpose: Purpose.default("live").describe(
    "train forces the neutral sampling that recorded logprobs hold for; eval and live leave it to the harness; judge is what a grader's own sessions have",
  ),
  model: z
    .string()
    .min(1, "give the name of a model, or leave it out")
    .nullable()
    .default(null)
    .describe(
      "the model that sessions train, by the name that its engines serve; null: the first that they serve, in an open session the first that it asks for",
    ),
  any_model: z
    .boolean()
    .default(false)
    .describe(
      "true: the first model answers for a name that no engine serves, and is trained for it; false: such a name is refused (404, `model_unknown`). In a sandbox, such a name always means the session's own model",
    ),
  sampling: z
    .union([Sampling, z.array(Sampling).min(1)])
    .default({})
    .describe("forced sampling parameters; of a list, entry t is for the main agent's t-th turn and the last one repeats"),
  seed: z
    .number()
    .int()
    .nullable()
    .default(null)
    .describe(
      "each call is asked with a seed of its own, which follows from this one, the task, the place in the group and the call's place in the session, so that another run asks with the same ones; null: as the harness asks",
    ),
  budgets: Budgets.prefault({}).describe("of a session; a spent one ends the rollout, which is graded as it stands"),
  train_classes: TrainClasses.describe(
    "kinds of call whose tokens may be trained; what is not listed is recorded, and left out as `auxiliary`",
  ),
  restore: Restore.describe(
    "what is put back of a turn that a harness sends back: what its serialiser changed; `full` also reasoning that it dropped on purpose, and then nothing that was sampled leaves the context; or nothing",
  ),
  continuity: ContinuityMode.describe(
    "auto: a later turn goes on from the very tokens of the earlier one where engine, template and history allow it; off: every turn is rendered anew",
  ),
  policy_mode: z
    .enum(["pin", "float"])
    .default("float")
    .describe(
      "pin: a session keeps the policy of its first call, and is refused when no engine has it any more; float: it goes on under new weights",
    ),
  pinned_policy: Policy.extend({ step: Policy.shape.step.default(null) })
    .nullable()
    .default(null)
    .describe("the only policy, by version and step, that may sample a session: its calls are refused where no engine has it; null: any"),
  allow_fields: z
    .array(z.string().min(1, "give the name of a field"))
    .default([])
    .describe(
      "fields of a body, such as `chat_template_kwargs`, that a sandboxed harness may hand to the engine beside those that every API has",
    ),
  fetch_images: z
    .array(
      z
        .string()
        .regex(
          /^(?:(?:https?|\*):\/\/|\*)[^/?#@\s]+$|^\*$/,
          "give an origin such as https://images.example.com, without a path; * stands for any characters",
        ),
    )
    .default([])
    .describe(
      "globs of origins, such as `https://images.example.com`, from which the proxy fetches images that a sandboxed harness names; all others travel in the request",
    ),
});
export type SessionOptions = z.infer<typeof SessionOptions>;

/** No other policy than one may sample it. */
export function isPinned({ policy_mode, pinned_policy }: Pick<SessionOptions, "policy_mode" | "pinned_policy">): boolean {
  return policy_mode === "pin" || pinned_policy !== null;
}

/** Where a rollout begins that goes on from a turn of another one. */
export const ForkedFrom = z.strictObject({
  rollout_id: z.string().nullable(),
  session_id: z.string(),
  turn: z.number().int().nonnegative().describe("the last turn that is answered from the record, as `alidade show` numbers them; 0: none"),
  edited: z.boolean().default(false).describe("the answer of that turn was given by hand, in the place of the sampled one"),
  rendered: z.boolean().default(false).describe("the engine renders the prompt anew: it need not be the recorded one, token for token"),
});
export type ForkedFrom = z.infer<typeof ForkedFrom>;

/** What a session is; given when it is opened and never changed: its place among others, what its client is, and the options. */
export const SessionSpec = z.strictObject({
  task_id: z.string().nullable().default(null).describe("the task that its rollout works on"),
  group_id: z.string().nullable().default(null).describe("rollouts with one baseline: those of one task"),
  sample_index: z.number().int().nullable().default(null).describe("the rollout's place in its group, from 0"),
  rollout_id: z.string().nullable().default(null).describe("the rollout's name; it finds the session as its own id does"),
  attempt: z.number().int().positive().default(1).describe("which attempt at the rollout it is; default: the next one"),
  member: z
    .string()
    .regex(/^[A-Za-z0-9_.-]{1,64}$/, "1 to 64 letters, digits, points, hyphens and underscores")
    .nullable()
    .default(null)
    .describe(
      "its name among the sessions of one rollout (agents of a team): they share the reward, count once in the baseline and are exported together",
    ),
  harness: z.string().nullable().default(null).describe("the name of the program that asks, for the record"),
  sandboxed: z
    .boolean()
    .default(false)
    .describe("the client is hostile, as each agent of a rollout is: what it may ask of proxy, engine and machine is bounded"),
  known_classes: z
    .array(RequestClass)
    .nullable()
    .default(null)
    .describe(
      "kinds of side call that the harness makes besides `main`, any other is recorded as main; null: all kinds, or none where it is sandboxed",
    ),
  dialects: z
    .array(z.string().min(1, "give the name of a dialect"))
    .min(1, "name a dialect, or give null for all")
    .nullable()
    .default(null)
    .describe("the dialects in which it may ask; another one is refused; null: all"),
  labels: z.record(z.string(), z.string()).default({}).describe("words of your own, by which sessions are found and rows are told apart"),
  relay: z
    .enum(["buffered", "live"])
    .default("buffered")
    .describe("buffered: an answer is given when it is whole and recorded; live: as it is sampled"),
  context_window: z
    .number()
    .int()
    .positive()
    .nullable()
    .default(null)
    .describe("tokens of context that the harness was told of; null: none"),
  forked_from: ForkedFrom.nullable().default(null).describe("the turn of another rollout that it goes on from; null: it begins anew"),
  ...SessionOptions.shape,
});
export type SessionSpec = z.infer<typeof SessionSpec>;

/** The input of a new session. Without `attempt` it is the next attempt of its rollout. */
export const NewSession = SessionSpec.extend({ attempt: SessionSpec.shape.attempt.unwrap().optional() });
export type NewSession = z.infer<typeof NewSession>;
