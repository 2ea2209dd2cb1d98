/**
 * How attempts ended, by cause: how many are in neither loss nor baseline, of the run, of each task and of each group; and
 * how many tokens of the others are not trained for what an agent can bring about. A policy that learns to do either is
 * seen here, and not in its rewards.
 */
import { type ErrorCode, errorCodes } from "../errors.ts";
import { sumCounts } from "./sum-counts.ts";

/** Above this share the rewards that are left are a selection: of a group of eight it is the first one. */
const alarmAbove = 0.1;

/** What is to be known of an attempt that is over. */
export type AttemptEnd = {
  task_id: string | null;
  group_id: string | null;
  mask_reason: string | null;
  /** null where there is no trajectory. */
  summary: { sampled_tokens: number; untrained_by_agent: Record<string, number> } | null;
};

export type Tally = {
  attempts: number;
  /** Reason -> attempts that are in neither loss nor baseline for it. */
  masked: Record<string, number>;
  /** Share of attempts that are masked and were not stopped from outside: 0 to 1. */
  masked_share: number;
  /** Among the attempts that are not masked. */
  sampled_tokens: number;
  /** Reason -> those of them that are not trained for what an agent can bring about, and their share: 0 to 1. */
  untrained: Record<string, number>;
  untrained_share: number;
};
export type AttemptTally = Tally & {
  tasks: (Tally & { task_id: string | null })[];
  groups: (Tally & { task_id: string | null; group_id: string | null })[];
  /** A sentence for each task and group of which a share is above `alarmAbove`; one for a task of one group. */
  alarms: string[];
};

/** The user's doing, or a crash of this process. */
const stopped: ReadonlySet<string> = new Set(["cancelled", "interrupted"]);

export function tallyOf(ends: readonly AttemptEnd[]): AttemptTally {
  const tasks = [...Map.groupBy(ends, (end) => end.task_id)].map(([task_id, all]) => ({ task_id, ...countOf(all) }));
  const groups = [...Map.groupBy(ends, (end) => JSON.stringify([end.task_id, end.group_id])).values()].map((all) => {
    const { task_id = null, group_id = null } = all[0] ?? {};
    return { task_id, group_id, ...countOf(all) };
  });
  const alarms = tasks.flatMap((task) => {
    const own = groups.filter((group) => group.task_id === task.task_id);
    return [
      ...alarmsOf(`task ${task.task_id}`, task),
      ...(own.length > 1 ? own.flatMap((one) => alarmsOf(`group ${one.group_id}`, one)) : []),
    ];
  });
  return { ...countOf(ends), tasks, groups, alarms };
}

function countOf(ends: readonly AttemptEnd[]): Tally {
  const masked = sumCounts(ends.map(({ mask_reason }) => (mask_reason === null ? {} : { [mask_reason]: 1 })));
  const lost = Object.entries(masked).reduce((sum, [reason, count]) => sum + (stopped.has(reason) ? 0 : count), 0);
  return { attempts: ends.length, masked, masked_share: shareOf(lost, ends.length), ...tokensOf(ends) };
}

function tokensOf(ends: readonly AttemptEnd[]): Pick<Tally, "sampled_tokens" | "untrained" | "untrained_share"> {
  const summaries = ends.flatMap(({ mask_reason, summary }) => (mask_reason === null && summary !== null ? [summary] : []));
  const sampled_tokens = summaries.reduce((sum, summary) => sum + summary.sampled_tokens, 0);
  const untrained = sumCounts(summaries.map(({ untrained_by_agent }) => untrained_by_agent));
  const lost = Object.values(untrained).reduce((sum, tokens) => sum + tokens, 0);
  return { sampled_tokens, untrained, untrained_share: shareOf(lost, sampled_tokens) };
}

function shareOf(part: number, whole: number): number {
  return whole === 0 ? 0 : part / whole;
}

/** Failures of the infrastructure that a work may bring about: it is what is graded. */
const ofGrading: ReadonlySet<ErrorCode> = new Set(["grader_error", "grader_timeout", "judge_abstained"]);

/** Whether a policy can cause this mask reason. It causes no missing image, dead engine or full disk. */
function mayBePolicys(reason: string): boolean {
  const code = Object.hasOwn(errorCodes, reason) ? (reason as ErrorCode) : null;
  return !stopped.has(reason) && (code === null || errorCodes[code] === "policy" || ofGrading.has(code));
}

function adviceOn({ masked }: Tally): string {
  return Object.keys(masked).some(mayBePolicys)
    ? "If the policy brings that about, `alidade export --unmeasured zero` trains it as a failure."
    : "The infrastructure caused all of them, so they say nothing about the policy: mend the cause, then `alidade run --resume` makes them again.";
}

function alarmsOf(what: string, tally: Tally): string[] {
  const tooMuch = `which is more than ${percent(alarmAbove)}`;
  const masked = `${what}: ${described(tally)}, ${tooMuch}. ${adviceOn(tally)}`;
  const tokens = `${what}: ${percent(tally.untrained_share)} of ${tally.sampled_tokens} sampled tokens are not trained (${listed(tally.untrained)}), ${tooMuch}. An agent can bring that about; \`alidade show\` prints its calls.`;
  return [...(tally.masked_share > alarmAbove ? [masked] : []), ...(tally.untrained_share > alarmAbove ? [tokens] : [])];
}

/** In words, for a person. */
export function described({ attempts, masked, masked_share }: Tally): string {
  const causes = listed(masked);
  return `${percent(masked_share)} of ${attempts} attempts are in neither loss nor baseline${causes === "" ? "" : ` (${causes})`}`;
}

function listed(counts: Record<string, number>): string {
  return Object.entries(counts)
    .map(([reason, count]) => `${count} ${reason}`)
    .join(", ");
}

function percent(share: number): string {
  return `${Math.round(100 * share)} %`;
}
