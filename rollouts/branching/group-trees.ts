/**
 * Forks of the groups of a run. When all rollouts of a group so far are over, the policy says behind which of their turns others
 * begin, as often as `depth` allows. Nothing is kept but counts: turns and logprobs are read from the session logs, so a run
 * that goes on after a kill finds the same trees in its records.
 */
import { messageOf } from "../../base/errors.ts";
import type { Branching } from "../../base/schema/branching.ts";
import type { RolloutRecord } from "../../base/schema/rollout.ts";
import type { Task } from "../../base/schema/task.ts";
import type { Harness } from "../../harnesses/index.ts";
import { toRecording } from "../../proxy/index.ts";
import { toReplayPlans } from "../replay/to-replay-plans.ts";
import type { RolloutPlan } from "../rollout-plan.ts";
import type { RunSetup } from "../run-setup.ts";
import type { BranchingPolicy } from "./branching-policy.ts";
import { chooseForks, depthOf, type ForkPoint } from "./choose-forks.ts";

export type TreesOfRun = {
  setup: RunSetup;
  branching: Branching;
  policy: BranchingPolicy;
  /** Rollouts of a group that begin at the task's beginning. */
  samples: number;
  retries: number;
  harness: Harness;
};

type Group = {
  task: Task;
  /** Rollouts that are not over. */
  open: number;
  /** The last record of each rollout that is over. */
  over: RolloutRecord[];
  /** Forks that a process before this one began and did not end. */
  interrupted: RolloutRecord[];
  /** Forks that were begun. */
  forks: number;
  /** How often forks were chosen. */
  rounds: number;
};

export class GroupTrees {
  readonly #run: TreesOfRun;
  readonly #groups = new Map<string, Group>();

  constructor(run: TreesOfRun) {
    this.#run = run;
  }

  /** Forks of the groups whose rollouts from the beginning are all over already. `isOver`: the rollout is not made again. */
  async resumed(
    tasks: readonly Task[],
    last: ReadonlyMap<string, RolloutRecord>,
    isOver: (record: RolloutRecord) => boolean,
  ): Promise<RolloutPlan[]> {
    const { setup, samples } = this.#run;
    const plans: RolloutPlan[] = [];
    const known = Map.groupBy(last.values(), ({ group_id }) => group_id);
    for (const task of tasks) {
      const group_id = `${setup.run_id}-${task.task_id}`;
      const records = known.get(group_id) ?? [];
      const chains = records.filter(({ sample_index }) => sample_index < samples);
      const forks = records.filter(({ sample_index }) => sample_index >= samples);
      const over = [...chains, ...forks].filter(isOver);
      const group: Group = {
        ...{ task, over, forks: forks.length, rounds: roundsOf(forks, records) },
        open: samples - chains.filter(isOver).length,
        interrupted: forks.filter((record) => !isOver(record)),
      };
      this.#groups.set(group_id, group);
      if (group.open === 0) plans.push(...(await this.#next(group_id, group)));
    }
    return plans;
  }

  /** Returns the forks that begin when this rollout is over. Never throws: if a group cannot be forked, it keeps its rollouts. */
  async after({ group_id }: RolloutPlan, record: RolloutRecord): Promise<RolloutPlan[]> {
    const group = this.#groups.get(group_id);
    if (group === undefined) return [];
    group.open--;
    group.over.push(record);
    return group.open > 0 ? [] : this.#next(group_id, group);
  }

  async #next(group_id: string, group: Group): Promise<RolloutPlan[]> {
    try {
      const plans = await this.#plans(group_id, group);
      group.open = plans.length;
      if (plans.length === 0) this.#groups.delete(group_id);
      return plans;
    } catch (error) {
      this.#groups.delete(group_id);
      this.#run.setup.onProgress({ type: "note", text: `group ${group_id} gets no more forks: ${messageOf(error)}` });
      return [];
    }
  }

  async #plans(group_id: string, group: Group): Promise<RolloutPlan[]> {
    const begun = group.interrupted.splice(0);
    if (begun.length > 0) return (await Promise.all(begun.map((record) => this.#again(group, record)))).flat();
    const { branching, samples } = this.#run;
    const left = branching.leaves - samples - group.forks;
    if (left <= 0 || group.rounds >= branching.depth) return [];
    const room = Math.ceil(left / (branching.depth - group.rounds));
    const chosen = await this.#choose(group_id, group, room);
    group.rounds++;
    const plans = chosen.map(({ rollout_id, turn }, at) =>
      this.#fork(group, { rollout_id, turn, sample_index: samples + group.forks + at, attempt: 1 }),
    );
    group.forks += chosen.length;
    return (await Promise.all(plans)).flat();
  }

  #choose(group_id: string, group: Group, room: number): Promise<ForkPoint[]> {
    const { setup, branching, policy } = this.#run;
    const engines = setup.proxy.pool.slots.map(({ facts }) => facts);
    const members = group.over.map((record) => ({
      rollout_id: record.rollout_id,
      forked_from: record.forked_from,
      reward: record.verdict?.reward ?? null,
      read: async () => (record.error === null ? this.#recording(record).catch(() => null) : null),
    }));
    return chooseForks({ group_id, rounds: group.rounds, room, branching, policy, members, engines });
  }

  /** A fork that a process before this one began, as its next attempt. */
  #again(group: Group, record: RolloutRecord): Promise<RolloutPlan[]> {
    const { forked_from, sample_index, attempt } = record;
    if (forked_from?.rollout_id == null) return Promise.resolve([]);
    return this.#fork(group, { rollout_id: forked_from.rollout_id, turn: forked_from.turn, sample_index, attempt: attempt + 1 });
  }

  async #fork(group: Group, { rollout_id, turn, sample_index, attempt }: WantedFork): Promise<RolloutPlan[]> {
    const { setup, branching, samples, retries, harness } = this.#run;
    const record = group.over.find((one) => one.rollout_id === rollout_id);
    if (record === undefined) return [];
    const recording = await this.#recording(record);
    const [plan] = toReplayPlans({
      ...{ run_id: setup.run_id, record, recording, task: group.task, harness, turn, words: "go_on", unrepeatable: true },
      sampled: { samples: 1, engines: setup.proxy.pool.slots.map(({ facts }) => facts), rendered: false, model: null, edit: null },
    });
    if (plan === undefined) return [];
    const { group_id } = record;
    const group_size = Math.max(samples, branching.leaves);
    return [{ ...plan, rollout_id: `${group_id}-${sample_index}`, group_id, group_size, sample_index, attempt, retries }];
  }

  async #recording({ session_id }: RolloutRecord) {
    return toRecording(session_id ?? "", await this.#run.setup.proxy.sessions.store.read(session_id ?? ""));
  }
}

type WantedFork = ForkPoint & { sample_index: number; attempt: number };

/** The rounds that are over, by the records. Of the last one not all forks may have begun, so it is made once more with what is left. */
function roundsOf(forks: readonly RolloutRecord[], records: readonly RolloutRecord[]): number {
  return Math.max(0, ...forks.map((record) => depthOf(record, records) - 1));
}
