/** What is known of an attempt: as it grows, and as its record and its trajectory tell it. */

import type { WorkLayer } from "../../base/files/layer.ts";
import type { NetworkUse } from "../../base/schema/network.ts";
import type { RolloutRecord, UserRecord, Verdict } from "../../base/schema/rollout.ts";
import type { ErrorRecord } from "../../base/schema/session-log.ts";
import type { Trajectory } from "../../base/schema/trajectory.ts";
import { recordVersions } from "../../base/schema/versions/record-versions.ts";
import type { ServiceReadings } from "../../graders/index.ts";
import type { Pack } from "../../harnesses/index.ts";
import type { Session } from "../../proxy/index.ts";
import { lossOf, type reconstruction, type TrajectoryFacts, untrainedByAgent } from "../../reconstruct/index.ts";
import type { ExpectedSandbox, SandboxFacts } from "../../sandboxes/index.ts";
import { usesNetwork } from "../../sandboxes/index.ts";
import type { NetworkRules } from "../../sandboxes/network/index.ts";
import type { ResumePlan, RolloutPlan } from "../rollout-plan.ts";
import type { HarnessRun } from "../run-harness.ts";
import type { StepRun } from "../run-steps.ts";

/** What is known of an attempt so far: it grows from step to step and becomes the record. */
export type RunningAttempt = {
  session: Session | null;
  sandbox: SandboxFacts | null;
  pack: Pack | null;
  run: HarnessRun | null;
  /** The session from its log, once it has ended; the rollout's result is added when it is known. */
  told: ReturnType<typeof reconstruction> | null;
  /** What the task's set-up left; null where it has none, or did not end. */
  setUp: WorkLayer | null;
  /** What was read of its services; null where graders read nothing of them. */
  services: ServiceReadings | null;
  work: WorkLayer | null;
  /** Steps of its task that the agent ended. */
  steps: StepRun[];
  /** The grader's sandbox: a warm pool makes it while the work is taken out. */
  grading: ExpectedSandbox | undefined;
  /** Who spoke for the user; null: the task has no user, or the user was not asked yet. */
  user: UserRecord | null;
  verdict: Verdict | null;
  error: ErrorRecord | null;
  /** With the log of what its sandboxes asked for. */
  rules: NetworkRules;
  times: Record<string, number>;
};

/** An attempt of which nothing is known but its rules and when it was queued. */
export function newAttempt(rules: NetworkRules, queued: number): RunningAttempt {
  return {
    session: null,
    sandbox: null,
    pack: null,
    run: null,
    told: null,
    setUp: null,
    services: null,
    work: null,
    steps: [],
    grading: undefined,
    user: null,
    verdict: null,
    error: null,
    rules,
    times: { queued },
  };
}

/** What a log does not know of the rollout around it. */
export function around(plan: RolloutPlan, attempt: RunningAttempt): TrajectoryFacts {
  return {
    rollout_id: plan.rollout_id,
    task: { id: plan.task.task_id, hash: plan.task_hash, data_source: plan.task.data_source },
    group: { id: plan.group_id, size: plan.group_size, sample_index: plan.sample_index },
    harness: { name: plan.harness.name, version: plan.harness.version, config_hash: attempt.pack?.hash ?? null },
    stop_reason: attempt.run?.stop_reason ?? attempt.error?.code ?? null,
    reward: null,
  };
}

/** What it came to. */
export function worthOf({ run, verdict, error, session }: RunningAttempt): TrajectoryFacts {
  return { ...rewardOf(verdict), ...lossOf(run, verdict, error, session?.callCount ?? 0) };
}

/** A verdict as a trajectory tells it. */
export function rewardOf(verdict: Verdict | null): Pick<Trajectory, "reward" | "reward_components"> {
  const components = Object.entries(verdict?.components ?? {});
  return {
    reward: verdict?.reward ?? null,
    reward_components: components.map(([name, { value, weight }]) => ({ scope: "rollout", target: null, name, value, weight })),
  };
}

function keptOf({ sha256, bytes, changes }: WorkLayer) {
  return { sha256, bytes, paths: changes.length };
}

export function recordOf(
  plan: RolloutPlan,
  attempt: RunningAttempt,
  state: RolloutRecord["state"],
  trajectory: Trajectory | null,
): RolloutRecord {
  const { run, verdict } = attempt;
  return {
    schema_version: recordVersions.rollout.now,
    rollout_id: plan.rollout_id,
    attempt: plan.attempt,
    task_id: plan.task.task_id,
    task_hash: plan.task_hash,
    group_id: plan.group_id,
    group_size: plan.group_size,
    sample_index: plan.sample_index,
    harness: plan.harness.name,
    harness_version: plan.harness.version,
    state,
    session_id: attempt.session?.id ?? null,
    stop_reason: run?.stop_reason ?? attempt.error?.code ?? null,
    exit_code: run?.exit_code ?? null,
    verdict,
    revision: 1,
    error: attempt.error,
    mask_reason: state === "done" ? lossOf(run, verdict, attempt.error, attempt.session?.callCount ?? 0).mask_reason : null,
    sandbox: attempt.sandbox && { ...attempt.sandbox },
    setup: attempt.setUp && keptOf(attempt.setUp),
    services: attempt.services && { before: keptOf(attempt.services.before), after: keptOf(attempt.services.after) },
    work: attempt.work && keptOf(attempt.work),
    steps: attempt.steps.map(({ name, run, left }) => ({
      name,
      stop_reason: run.stop_reason,
      work: left && keptOf(left.work),
      services: left?.services ? keptOf(left.services.after) : null,
    })),
    network: networkUse(plan.task, attempt.rules.log.use()),
    forked_from: attempt.session?.spec.forked_from ?? null,
    replay: trajectory?.replay ?? null,
    user: attempt.user,
    resume: plan.resume ? toResumeRecord(plan.resume) : null,
    times: attempt.times,
    output_tail: run?.output_tail ?? null,
    summary: trajectory && {
      turns: trajectory.calls.length,
      sampled_tokens: trajectory.fidelity.sampled_tokens,
      ...(trajectory.fidelity.replayed_tokens !== undefined && { replayed_tokens: trajectory.fidelity.replayed_tokens }),
      trainable_tokens: trajectory.fidelity.trainable_tokens,
      untrained_by_agent: untrainedByAgent(trajectory),
      traces: trajectory.traces.length,
    },
  };
}

function toResumeRecord(resume: ResumePlan): RolloutRecord["resume"] {
  const { how, again_tokens, why } = resume;
  return how === "replay"
    ? { how, spared_tokens: resume.sampled_tokens, again_tokens, why, ...(resume.parked_from && { parked_from: resume.parked_from }) }
    : { how, spared_tokens: 0, again_tokens, why };
}

/** null: nothing of it may use a network, and nothing did. A verifier's own container may where its task may not. */
function networkUse({ environment }: RolloutPlan["task"], use: NetworkUse): NetworkUse | null {
  const isUsed = use.destinations.length > 0 || use.refusals.length > 0;
  return isUsed || usesNetwork(environment) ? use : null;
}
