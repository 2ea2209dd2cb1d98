/** What gradings and scan say against a task, in sentences. */
import type { AdmissionGrading, AdmissionReason, Leak, LeakScan } from "../../base/schema/admission.ts";
import type { Task } from "../../base/schema/task.ts";
import { probes } from "../probes/index.ts";
import { highestReward } from "../rules/reward-range.ts";

type Gradings = readonly AdmissionGrading[];

/** [] where the task holds. Nothing is graded again until it passes: gradings that differ are a reason. */
export function reasonsAgainst(task: Task, gradings: Gradings, scan: LeakScan | null): AdmissionReason[] {
  return [
    ...againstGold(task, gradings),
    ...againstNoChange(task, gradings),
    ...againstRandomEdit(gradings),
    ...againstProbes(gradings),
    ...againstLeaks(scan),
  ];
}

/** The reward of no change: the highest, where its gradings differ. */
export function baselineOf(gradings: Gradings): number | null {
  const rewards = rewardsOf(gradings, "no-op").filter((reward) => reward !== null);
  return rewards.length === 0 ? null : Math.max(...rewards);
}

function againstGold(task: Task, gradings: Gradings): AdmissionReason[] {
  const full = highestReward(task);
  const varying = againstVarying("the known solution", gradings, "gold");
  if (varying.length > 0) return varying;
  const [first] = gradings.filter(({ work }) => work === "gold");
  if (first === undefined || first.reward === full) return [];
  if (first.reward === null) return [ungraded("the known solution", first)];
  const message = `the known solution earns ${first.reward} and must earn ${full}: mend the solution or the grader, or declare the task's reward_range`;
  return [{ code: "gold_not_full", message }];
}

function againstNoChange(task: Task, gradings: Gradings): AdmissionReason[] {
  const varying = againstVarying("no change at all", gradings, "no-op");
  if (varying.length > 0) return varying;
  const [first] = gradings.filter(({ work }) => work === "no-op");
  if (first === undefined) return [];
  if (first.reward === null) return [ungraded("no change at all", first)];
  const full = highestReward(task);
  if (first.reward < full) return [];
  return [
    { code: "no_change_pays", message: `no change at all earns ${first.reward}, which is all: the grader tells no solution from nothing` },
  ];
}

function againstVarying(what: string, gradings: Gradings, work: string): AdmissionReason[] {
  const rewards = rewardsOf(gradings, work);
  if (new Set(rewards).size < 2) return [];
  const said = rewards.map((reward) => reward ?? "no reward").join(", ");
  return [{ code: "flaky", message: `${what} earns ${said} in ${rewards.length} gradings of the same work: make the tests repeatable` }];
}

function ungraded(what: string, { status, error }: AdmissionGrading): AdmissionReason {
  return { code: "ungraded", message: `${what} earns no reward (${status}): ${error ?? "the grader gave no reason"}` };
}

function againstRandomEdit(gradings: Gradings): AdmissionReason[] {
  const baseline = baselineOf(gradings);
  const edit = gradings.find(({ work }) => work === "random-edit");
  if (edit?.reward == null || baseline === null || edit.reward <= baseline) return [];
  const message = `a random edit earns ${edit.reward}, and no change ${baseline}: the grader pays for change and not for a solution`;
  return [{ code: "random_edit_pays", message }];
}

function againstProbes(gradings: Gradings): AdmissionReason[] {
  const baseline = baselineOf(gradings);
  if (baseline === null) return [];
  return probes.flatMap((probe) =>
    gradings
      .filter(({ work, reward }) => work === probe.name && reward !== null && reward > baseline)
      .map(({ reward, tier, language }) => {
        const where = language === null ? "" : ` in ${language}`;
        const message = `${probe.name}${where}: a work that ${probe.title} earns ${reward} at tier ${tier}, and no change ${baseline}; so ${probe.cure}`;
        return { code: "hackable", message } as const;
      }),
  );
}

const sought = {
  solution: "lines of the known solution",
  tests: "lines of the hidden tests",
  names: "names of tests that fail before the fix",
  outputs: "lines of the expected outputs",
};

/** Names alone are said and count for nothing: tests that fail before the fix may be there for all to see. */
function againstLeaks(scan: LeakScan | null): AdmissionReason[] {
  const kinds = ["solution", "tests", "outputs"] as const;
  return kinds.flatMap((what) => {
    const leaks = scan?.leaks.filter((leak) => leak.what === what) ?? [];
    if (leaks.length === 0) return [];
    const message = `an agent can read ${leaksInWords(leaks)}: take it away (environment.conceal), or out of the image`;
    return [{ code: "leak", message } as const];
  });
}

/** Places that are named; the record has all. */
const placesNamed = 4;

/** All of one kind. The place that holds most is named first, with how much it holds. */
export function leaksInWords(leaks: readonly Leak[]): string {
  const [first, ...others] = leaks.toSorted((a, b) => b.found - a.found) as [Leak, ...Leak[]];
  const named = others.slice(0, placesNamed - 1).map(({ place }) => place);
  const more = others.length - named.length;
  const rest = [...named, ...(more > 0 ? [`${more} more places`] : [])].join(", ");
  return `${first.found} of ${first.of} ${sought[first.what]} in ${first.place}${rest && `, and also in ${rest}`}`;
}

function rewardsOf(gradings: Gradings, wanted: string): (number | null)[] {
  return gradings.filter(({ work }) => work === wanted).map(({ reward }) => reward);
}
