/** Runs the line over a process's own plans. No ledger knows them, so their records are the only state. */
import type { Waitable } from "../../base/host/changes.ts";
import { untilAborted } from "../../base/host/until-aborted.ts";
import type { RolloutPlan } from "../rollout-plan.ts";
import type { RolloutOutcome } from "../run-rollout.ts";
import type { RunSetup } from "../run-setup.ts";
import { failsAgainHere } from "./broken-by.ts";
import { type MadeAttempt, makeAttempt } from "./make-attempt.ts";
import { watchOfRun } from "./null-watch.ts";
import { type ClaimedRollout, RolloutLine, type RolloutSource } from "./rollout-line.ts";
import { setAside } from "./set-aside.ts";

/** `plans` are taken only when there is room, so that a run of 80 000 holds few in memory. */
export type PlansToMake = {
  plans: Iterator<RolloutPlan, undefined>;
  atOnce: number;
  /** Called after each attempt, also if another one follows. */
  onAttempt?: (outcome: RolloutOutcome) => void;
  /** Called after each rollout that is over. If it returns true, no more rollouts begin. */
  endsAfter?: (outcome: RolloutOutcome) => boolean;
  /** What begins because a rollout is over, before more of `plans`. Must not throw. */
  moreAfter?: (plan: RolloutPlan, outcome: RolloutOutcome) => Promise<RolloutPlan[]>;
};

type PlanClaim = RolloutPlan & ClaimedRollout;

const slot = "plan";

/** A list of plans never changes, so a wait for a change ends only with the signal. */
const asItIs: Waitable = { version: 0, after: (_seen, signal) => untilAborted(new Promise(() => undefined), signal) };

/**
 * Resolves when all plans are made, or when a signal has fired and all running attempts have ended. Throws if an attempt
 * cannot be recorded; no other attempt begins after that.
 */
export async function makePlans(setup: RunSetup, what: PlansToMake, signal: AbortSignal, drain: AbortSignal = signal): Promise<void> {
  const { plans, atOnce, onAttempt, endsAfter, moreAfter } = what;
  const again: PlanClaim[] = [];
  const failures: unknown[] = [];
  let isEnded = false;
  const next = (): PlanClaim | undefined => {
    const plan = again.shift() ?? plans.next().value;
    return plan && { failures: 0, ...plan };
  };
  const addMore = async (plan: PlanClaim, outcome: RolloutOutcome): Promise<void> => {
    for (const more of (await moreAfter?.(plan, outcome)) ?? []) again.push({ failures: 0, ...more });
  };
  const source: RolloutSource<PlanClaim, MadeAttempt, typeof slot> = {
    claimable: asItIs,
    async claim(line) {
      while (!isEnded && line.taken(slot) < atOnce) {
        const claim = next();
        if (claim === undefined) break;
        line.begin(claim, slot);
      }
      return isEnded || line.claims.length === 0 ? "end" : "wait";
    },
    async attempt(plan, signals) {
      const made = await makeAttempt(setup, plan, signals.signal, signals.drain);
      onAttempt?.(made);
      return made;
    },
    mayRepeat: ({ failures: before, retries }, broken) => before < retries && !failsAgainHere(broken),
    async again({ attempt, failures: before, ...plan }, broken) {
      if (broken !== null) again.push({ ...plan, attempt: attempt + 1, failures: before + 1 });
    },
    async over(plan, made) {
      isEnded ||= endsAfter?.(made) ?? false;
      await addMore(plan, made);
    },
    async aside(plan, { of, why }) {
      // The other rollouts of a task that is set aside have no record: a later process makes them.
      if (of === "task") return;
      const record = await setAside(setup, plan, why);
      onAttempt?.({ record, trajectory: null });
      await addMore(plan, { record, trajectory: null });
    },
    failed(_plan, error) {
      failures.push(error);
      isEnded = true;
    },
  };
  await new RolloutLine(source, { ...setup, rules: watchOfRun }, { signal, drain }).run();
  if (failures.length > 0) throw failures[0];
}
