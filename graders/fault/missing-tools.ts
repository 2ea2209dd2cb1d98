/**
 * Decides who is at fault if tests could not fetch their tools: the machine or the work. A work can remove `curl`, break apt,
 * print the errors of both, and ask the door for hosts. So the work's own grading proves nothing; it is only a reason to ask.
 * The proof is two gradings without the work, in fresh sandboxes with network logs of their own: one of the files as they were
 * delivered, one of the known solution.
 */
import { AlidadeError } from "../../base/errors.ts";
import type { Verdict } from "../../base/schema/rollout.ts";
import { couldNotJudge, unfetchedInWords } from "../harbor/unfetched.ts";
import { type OwnGrading, unfetchedOf } from "./own-gradings.ts";

/** Whether the evidence has a sign that the tests lacked tools. */
export function lacksTools(verdict: Verdict): boolean {
  return unfetchedOf(verdict) !== null;
}

/**
 * `work`: without the work, the tests have their tools. So the work is graded once more, and that counts.
 * `unavailable`: without the work, the tests lack their tools too, and cannot tell the known solution from no change.
 * `none`: the tests lack something, but still judge.
 */
export function faultOfTools(own: readonly OwnGrading[]): "work" | "unavailable" | "none" {
  const [unchanged, gold] = own;
  if (unchanged?.unfetched === undefined) return "work";
  if (gold !== undefined) return isMore(gold.reward, unchanged.reward) ? "none" : "unavailable";
  return couldNotJudge(unchanged.unfetched) ? "unavailable" : "none";
}

function isMore(reward: number | null, least: number | null): boolean {
  return reward !== null && (least === null || reward > least);
}

/** Returns a verdict without a reward. Its message quotes the gradings of the task's own files, and nothing that the work printed. */
export function unavailable(verdict: Verdict, own: readonly OwnGrading[]): Verdict {
  const found = own[0]?.unfetched;
  const all = own.map(({ work }) => work).join(" and ");
  const said = found === undefined ? "the tests could not fetch their tools" : unfetchedInWords(found);
  const { code, message } = new AlidadeError("verifier_unavailable", `${said} (shown by: ${all})`);
  const evidence = { ...verdict.evidence, own_files: own };
  return { ...verdict, reward: null, status: "grader_error", evidence, error: { code, message, status: null } };
}
