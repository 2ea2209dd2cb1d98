/** What a session is: given when it is opened and never changed. */
import { z } from "zod";
import { Sampling } from "./message.ts";

export const Purpose = z.enum(["train", "eval", "live"]);
export type Purpose = z.infer<typeof Purpose>;

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
    .describe("bytes of the session's log; 256 MiB in a sandbox (two hundred screenshots, or the ids of several million tokens)"),
});
export type Budgets = z.infer<typeof Budgets>;

export const RequestClass = z.enum(["main", "title", "topic", "summary", "compaction", "quota", "check", "memory", "sub_agent", "unknown"]);
export type RequestClass = z.infer<typeof RequestClass>;

/** The task's own work, and the summaries on which that work goes on; the others are about the session, and it goes on without them. */
export const workClasses: readonly RequestClass[] = ["main", "sub_agent", "compaction", "summary", "unknown"];

/**
 * Which kinds of call are trained, by default those of the work. Calls about the session (a title, a topic, a check
 * whether it goes in circles) would learn noise from the task's reward.
 */
export const TrainClasses = z.array(RequestClass).default([...workClasses]);

export const Restore = z.enum(["serialisation", "full", "off"]).default("serialisation");
export const ContinuityMode = z.enum(["auto", "off"]).default("auto");

export const SessionSpec = z.strictObject({
  task_id: z.string().nullable().default(null),
  group_id: z.string().nullable().default(null),
  sample_index: z.number().int().nullable().default(null),
  rollout_id: z.string().nullable().default(null),
  attempt: z.number().int().positive().default(1),
  /**
   * Where several sessions are one rollout (the agents of a team): which of them this is. They share the rollout's reward,
   * are one entry in its group's baseline and are exported together, each as the agent of this name.
   */
  member: z
    .string()
    .regex(/^[A-Za-z0-9_.-]{1,64}$/, "1 to 64 letters, digits, points, hyphens and underscores")
    .nullable()
    .default(null),
  purpose: Purpose.default("live"),
  harness: z.string().nullable().default(null),
  /** The client is hostile input, as each agent of a rollout is: what it may ask of proxy, engine and machine is bounded. */
  sandboxed: z.boolean().default(false),
  /** The model that the session trains, by the name that its engines serve. null: of a sandboxed one the first that the policy's engines serve, of another one the first that it asks for. */
  model: z.string().min(1, "give the name of a model, or leave it out").nullable().default(null),
  /** Kinds of call beside `main` that its harness is known to make; another one is recorded as main. null: all of an open session, none of a sandboxed one. */
  known_classes: z.array(RequestClass).nullable().default(null),
  /** Of a sandboxed session: fields of a body that reach the engine beside those of every API, such as `chat_template_kwargs`. */
  allow_fields: z.array(z.string().min(1, "give the name of a field")).default([]),
  /** Of a sandboxed session: globs of the origins (`https://images.example.com`) from which the proxy fetches images that it names. */
  fetch_images: z
    .array(
      z
        .string()
        .regex(
          /^(?:(?:https?|\*):\/\/|\*)[^/?#@\s]+$|^\*$/,
          "give an origin such as https://images.example.com, without a path; * stands for any characters",
        ),
    )
    .default([]),
  labels: z.record(z.string(), z.string()).default({}),
  /** Forced sampling parameters; of a list, entry t is for the main agent's t-th turn and the last one repeats. */
  sampling: z.union([Sampling, z.array(Sampling).min(1)]).default({}),
  budgets: Budgets.default({}),
  train_classes: TrainClasses,
  relay: z.enum(["buffered", "live"]).default("buffered"),
  restore: Restore,
  /** Of sessions that were written before there was any it stands in their logs that it was off. */
  continuity: ContinuityMode,
  policy_mode: z.enum(["pin", "float"]).default("float"),
});
export type SessionSpec = z.infer<typeof SessionSpec>;

/** What a session is asked for with: without `attempt` it becomes the next one of its rollout. */
export const NewSession = SessionSpec.extend({ attempt: SessionSpec.shape.attempt.unwrap().optional() });
export type NewSession = z.infer<typeof NewSession>;
