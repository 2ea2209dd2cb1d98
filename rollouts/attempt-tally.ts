/**
 * How attempts ended, by cause: how many are in neither loss nor baseline, of the run, of each task and of each group. A
 * policy that learns to bring such ends about is seen here, and not in its rewards.
 */

/** Above this share the rewards that are left are a selection: of a group of eight it is the first one. */
export const alarmAbove = 0.1;

/** What is to be known of an attempt that is over. */
export type AttemptEnd = { task_id: string | null; group_id: string | null; mask_reason: string | null };

export type Tally = {
  attempts: number;
  /** Reason -> attempts that are in neither loss nor baseline for it. */
  masked: Record<string, number>;
  /** Of the attempts, those that are masked and were not stopped from outside: 0 to 1. */
  masked_share: number;
};
export type AttemptTally = Tally & {
  tasks: (Tally & { task_id: string | null })[];
  groups: (Tally & { task_id: string | null; group_id: string | null })[];
  /** A sentence for each task and group whose share is above `alarmAbove`; one for a task of one group. */
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
    return [alarmOf(`task ${task.task_id}`, task), ...(own.length > 1 ? own.map((one) => alarmOf(`group ${one.group_id}`, one)) : [])];
  });
  return { ...countOf(ends), tasks, groups, alarms: alarms.filter((alarm) => alarm !== null) };
}

function countOf(ends: readonly AttemptEnd[]): Tally {
  const masked = new Map<string, number>();
  for (const { mask_reason } of ends) if (mask_reason !== null) masked.set(mask_reason, (masked.get(mask_reason) ?? 0) + 1);
  const lost = [...masked].reduce((sum, [reason, count]) => sum + (stopped.has(reason) ? 0 : count), 0);
  return { attempts: ends.length, masked: Object.fromEntries(masked), masked_share: ends.length === 0 ? 0 : lost / ends.length };
}

function alarmOf(what: string, tally: Tally): string | null {
  if (tally.masked_share <= alarmAbove) return null;
  return `${what}: ${described(tally)}, which is more than ${percent(alarmAbove)}. If the policy brings that about, \`alidade export --unmeasured zero\` trains it as a failure.`;
}

/** In words, for a person. */
export function described({ attempts, masked, masked_share }: Tally): string {
  const causes = Object.entries(masked).map(([reason, count]) => `${count} ${reason}`);
  return `${percent(masked_share)} of ${attempts} attempts are in neither loss nor baseline${causes.length > 0 ? ` (${causes.join(", ")})` : ""}`;
}

function percent(share: number): string {
  return `${Math.round(100 * share)} %`;
}
