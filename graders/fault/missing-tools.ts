/**
 * Tests that could not fetch their tools judged nothing: is that the machine's doing or the work's? A work can remove `curl`,
 * break apt, print what they say when they fail, and ask the door for hosts. So what its grading shows is never proof, only a
 * reason to ask. The proof are gradings without the work, in fresh sandboxes with a log of their own: the files as they were
 * delivered, and the known solution.
 */
import { AlidadeError } from "../../base/errors.ts";
import type { Verdict } from "../../base/schema/rollout.ts";
import { couldNotJudge, unfetchedInWords } from "../harbor/unfetched.ts";
import { type OwnGrading, unfetchedOf } from "./own-gradings.ts";

/** Does something in its evidence say that its tests lacked tools? */
export function lacksTools(verdict: Verdict): boolean {
  return unfetchedOf(verdict) !== null;
}

/**
 * `work`: without it the tests have their tools, so another grading of it counts. `unavailable`: they lack them without it
 * too, and no longer tell the known solution from nothing. `none`: they lack something and judge nevertheless.
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

/** What is said of it is what the task's own files showed, and no word of the work. */
export function unavailable(verdict: Verdict, own: readonly OwnGrading[]): Verdict {
  const found = own[0]?.unfetched;
  const all = own.map(({ work }) => work).join(" and ");
  const said = found === undefined ? "the tests could not fetch their tools" : unfetchedInWords(found);
  const { code, message } = new AlidadeError("verifier_unavailable", `${said} (shown by: ${all})`);
  const evidence = { ...verdict.evidence, own_files: own };
  return { ...verdict, reward: null, status: "grader_error", evidence, error: { code, message, status: null } };
}
