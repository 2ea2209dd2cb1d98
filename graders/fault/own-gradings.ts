/**
 * Grades the task's own works right after a grading failed: the files as they were delivered, and the known solution. The
 * results show whether the work is at fault, or the grader and the machine.
 */
import { changesBetween, keepLayer, temporaryLayers, type WorkLayer } from "../../base/files/layer.ts";
import { Deadline } from "../../base/host/deadline.ts";
import type { Verdict } from "../../base/schema/rollout.ts";
import type { GradeContext } from "../grader.ts";
import { Unfetched } from "../harbor/unfetched.ts";
import { goldWork } from "../work/gold.ts";
import { type Clock, clockOf, isWellInside, saidClock, wholeSeconds } from "./clock.ts";

/** Stands in the verdict's evidence as `own_files`. `unfetched`: signs that its tests lacked tools. */
export type OwnGrading = {
  work: "no change" | "known solution";
  reward: number | null;
  status: Verdict["status"];
  clock: Clock;
  unfetched?: Unfetched;
};

/**
 * `gradeOne` grades once, and does not ask who is at fault. No calls of the agent are passed on. The known solution is graded
 * if the delivered files gave no reward, or if `both` asks for it; `both` gets the first result.
 */
export async function gradeItsOwn(
  context: GradeContext,
  gradeOne: (context: GradeContext) => Promise<Verdict>,
  both: (own: readonly OwnGrading[]) => boolean,
): Promise<OwnGrading[]> {
  const { trajectory, lend: _agents, ...others } = context;
  const silent = { ...others, ...(trajectory && { trajectory: { ...trajectory, calls: [] } }) };
  const gradeOwn = async (name: OwnGrading["work"], work: WorkLayer): Promise<OwnGrading> => {
    const verdict = await gradeOne({ ...silent, work });
    const { reward, status } = verdict;
    const unfetched = unfetchedOf(verdict);
    return { work: name, reward, status, clock: clockOf(verdict, context.task.limits), ...(unfetched && { unfetched }) };
  };
  await using kept = await temporaryLayers();
  const unchanged = await gradeOwn("no change", await keepLayer(changesBetween([], [], ""), kept.folder));
  const needsGold = unchanged.reward === null || both([unchanged]);
  const gold = needsGold ? await goldOf(context, kept.folder).catch(() => null) : null;
  return gold === null ? [unchanged] : [unchanged, await gradeOwn("known solution", gold)];
}

/** Returns the signs in a verdict's evidence; null: there are none. */
export function unfetchedOf({ evidence }: Pick<Verdict, "evidence">): Unfetched | null {
  return Unfetched.safeParse(evidence.unfetched).data ?? null;
}

/** Rejects if its script takes longer than a whole grading may. Then the delivered files alone decide. */
async function goldOf({ task, fresh, signal }: GradeContext, folder: string): Promise<WorkLayer | null> {
  using deadline = new Deadline(wholeSeconds(task.limits) * 1_000);
  await using delivered = await fresh();
  return await goldWork(task, delivered, folder, { signal: AbortSignal.any([signal, deadline.signal]) });
}

/** Whether one of them was measured. Then grader and infrastructure work. */
export function isMeasured(own: readonly OwnGrading[]): boolean {
  return own.some(({ reward }) => reward !== null);
}

/**
 * Whether there was time enough for any work. Each that was measured must have ended well inside its limit. The known solution,
 * if there is one, must be measured: it shows how long an honest work takes. No change may hang: that may be the fault to mend.
 */
export function hadTime(own: readonly OwnGrading[]): boolean {
  const hangs = own.some(({ work, reward }) => work === "known solution" && reward === null);
  return isMeasured(own) && !hangs && own.every(({ reward, clock }) => reward === null || isWellInside(clock));
}

/** Returns words for messages: `no change 1.2 of 60 seconds, known solution 2.5 of 60 seconds`. */
export function saidOwn(own: readonly OwnGrading[]): string {
  return own.map(({ work, reward, status, clock }) => `${work} ${saidClock(clock)}${reward === null ? ` (${status})` : ""}`).join(", ");
}
