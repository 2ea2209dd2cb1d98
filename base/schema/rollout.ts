/** A rollout's record and its verdict, as they stand in `rollouts.jsonl` (the last line of a rollout_id and attempt wins). */
import { z } from "zod";
import { Time } from "./log/time.ts";
import { NetworkUse } from "./network.ts";
import { ErrorRecord } from "./session-log.ts";
import { ForkedFrom } from "./session-spec.ts";
import { ReplayReport } from "./trajectory.ts";
import { recordVersions } from "./versions/record-versions.ts";
import { versioned } from "./versions/versioned.ts";

/** A rollout passes with at least this reward by default. */
export const passReward = 1;

export const VerdictStatus = z.enum([
  "graded",
  "no_output",
  "grader_error",
  "grader_timeout",
  "judge_abstained",
  "infra_error",
  "cancelled",
]);

/** Tier of isolation between what the agent left and what grades it (T0 shared … T3 black box). */
export const Tier = z.enum(["T0", "T1", "T2", "T3"]);
export type Tier = z.infer<typeof Tier>;

/**
 * What isolated a work from this machine during grading, as the sandbox backend calls it, such as `container`. We reserve
 * two words. `shared`: the agent's own sandbox. `none`: no isolation.
 */
export const Isolation = z.string().min(1).max(64);
export type Isolation = z.infer<typeof Isolation>;

/** Tells whether anything isolates the work from this machine. */
export function isIsolated(isolation: Isolation): boolean {
  return isolation !== "none";
}

/** Tells whether the work was graded in the agent's own sandbox. */
export function isLent(isolation: Isolation): boolean {
  return isolation === "shared";
}

/** Tells whether grading had a place of its own that the agent never used, isolated from this machine. */
export function isApart(isolation: Isolation): boolean {
  return isIsolated(isolation) && !isLent(isolation);
}

export const Verdict = z.strictObject({
  /** null where nothing was measured; never a fake 0. */
  reward: z.number().nullable(),
  components: z.record(z.string(), z.strictObject({ value: z.number().nullable(), weight: z.number() })),
  /** How the reward follows from the components; left out where it does not follow from them. */
  formula: z.string().optional(),
  status: VerdictStatus,
  tier: Tier,
  isolation: Isolation,
  grader: z.string(),
  /** Version of the grader's own rules; left out where it tells none. */
  grader_version: z.string().optional(),
  /** What a person needs to believe it: names that failed, a tail of the output, hashes. Bounded. */
  evidence: z.record(z.string(), z.unknown()),
  error: ErrorRecord.nullable(),
  duration_ms: z.number(),
});
export type Verdict = z.infer<typeof Verdict>;

const KeptLayer = z.strictObject({ sha256: z.string(), bytes: z.number().int(), paths: z.number().int() });
export type KeptLayer = z.infer<typeof KeptLayer>;

export const RolloutState = z.enum(["queued", "init", "run", "post", "done"]);

/** The rollout of an earlier group that was slower than its group, and was parked (`straggler_cut` of a set). */
export const ParkedFrom = z.strictObject({
  rollout_id: z.string(),
  group_id: z.string(),
  sample_index: z.number().int(),
  step: z.number().int().nullable().describe("policy step at which its group was begun; null: the set has no max_version_lag"),
});
export type ParkedFrom = z.infer<typeof ParkedFrom>;

/** How a rollout went on whose process had died, or that was parked. */
export const ResumeRecord = z.strictObject({
  how: z.enum(["replay", "again"]).describe("with the session of the attempt before, or from nothing"),
  spared_tokens: z.number().int().describe("sampled before by finished calls, and not sampled again"),
  again_tokens: z.number().int().describe("sampled before by finished calls of attempts that were begun anew, this one and earlier ones"),
  why: z.string().nullable().describe("why it, or an attempt before it, was begun anew; null: none was"),
  parked_from: ParkedFrom.optional().describe("its session began as this rollout, which was parked; left out: it began here"),
});
export type ResumeRecord = z.infer<typeof ResumeRecord>;

/** Why a conversation with a user ended, if the end of the agent's run was not the reason. */
export const UserEnd = z.enum([
  "stop",
  "max_turns",
  "context_full",
  "user_silent",
  "user_refused",
  "user_unreadable",
  "agent_silent",
  "agent_too_long",
  "agent_unreadable",
]);
export type UserEnd = z.infer<typeof UserEnd>;

/** The model that spoke for the user of a rollout. */
export const UserRecord = z.strictObject({
  session_id: z.string().describe("its own session; the log has its prompts and its answers"),
  model: z.string(),
  turns: z.number().int().describe("its messages that reached the agent, the first one included"),
  sampled_tokens: z.number().int().nullable().describe("sum of `usage` over its answers; null: an answer had no `usage`"),
  end: UserEnd.nullable().describe("why the conversation ended; null: the agent's run ended first"),
});
export type UserRecord = z.infer<typeof UserRecord>;

const RolloutFields = z.strictObject({
  schema_version: z.literal(recordVersions.rollout.now).default(recordVersions.rollout.now),
  rollout_id: z.string(),
  attempt: z.number().int().positive(),
  task_id: z.string(),
  task_hash: z.string(),
  group_id: z.string(),
  group_size: z.number().int(),
  sample_index: z.number().int(),
  harness: z.string(),
  harness_version: z.string().nullable(),
  state: RolloutState,
  session_id: z.string().nullable(),
  /** Why the harness stopped: exited, timeout, budget_spent, cancelled, or the code of an error. */
  stop_reason: z.string().nullable(),
  exit_code: z.number().int().nullable(),
  verdict: Verdict.nullable(),
  /** 1: as the run left it. One more for each `alidade regrade` and `alidade score`. The last one counts. */
  revision: z.number().int().positive().default(1),
  error: ErrorRecord.nullable(),
  /** Why it is in neither loss nor baseline; null where it counts, or is not over. */
  mask_reason: z.string().nullable().default(null),
  sandbox: z
    .record(z.string(), z.unknown())
    .nullable()
    .describe("backend, isolation, image digest, packages, user, what is writable, what limits the disk, whose profile of system calls"),
  setup: KeptLayer.nullable()
    .default(null)
    .describe("what the task's set-up left before the agent began, kept as `work` is; null where there was none"),
  services: z
    .strictObject({ before: KeptLayer, after: KeptLayer })
    .nullable()
    .default(null)
    .describe("what graders read of the task's services, before the agent began and after it ended; kept as `work` is"),
  work: KeptLayer.nullable()
    .default(null)
    .describe("what the agent changed since: `blobs/<sha256>.tar.gz` in the run's folder, its size, and how many paths it names"),
  steps: z
    .array(
      z.strictObject({
        name: z.string(),
        stop_reason: z.string(),
        work: KeptLayer.nullable(),
        services: KeptLayer.nullable().default(null),
      }),
    )
    .default([])
    .describe(
      "of a task with steps: those that the agent began, how each ended, the work after it, and what graders read of the services after it; `work` and `services.after` are the last of them",
    ),
  network: NetworkUse.nullable()
    .default(null)
    .describe("what went out of its sandboxes and what was refused; null where the task has no network"),
  forked_from: ForkedFrom.nullable().default(null).describe("the turn of another rollout that it went on from"),
  replay: ReplayReport.nullable().default(null).describe("how its replayed part went; null where nothing was replayed"),
  resume: ResumeRecord.nullable().default(null).describe("how it went on from an attempt whose process died; null: there was none"),
  user: UserRecord.nullable().default(null).describe("who spoke for the user; null: the task has no user, or the user was not asked yet"),
  times: z.record(z.string(), Time),
  /** Tail of what the harness printed, bounded. */
  output_tail: z.string().nullable(),
  summary: z
    .strictObject({
      turns: z.number().int(),
      sampled_tokens: z.number().int().describe("by this rollout"),
      replayed_tokens: z.number().int().optional().describe("as in `fidelity` of the trajectory"),
      trainable_tokens: z.number().int(),
      untrained_by_agent: z
        .record(z.string(), z.number().int())
        .default({})
        .describe("reason -> sampled tokens not trained for what an agent can bring about"),
      traces: z.number().int(),
    })
    .nullable(),
});
export const RolloutRecord = versioned(recordVersions.rollout, RolloutFields);
export type RolloutRecord = z.infer<typeof RolloutRecord>;
