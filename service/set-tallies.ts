/**
 * What the results of each set add up to. They are read once, by the cursors that trainers use, and added to what is known:
 * a look at a set costs the results that are new since the last one. After a restart the first look reads all of them.
 */
import type { Ledger, ResultRow, WholeGroup } from "../ledger/index.ts";

export type SetTally = {
  /** Results with a reward. */
  measured: number;
  reward_sum: number;
  /** Results with a reward of `passReward` or more. */
  passed: number;
  /** Results without a reward, those that were cancelled aside. */
  unmeasured: number;
  sampled_tokens: number;
  trainable_tokens: number;
  /** Whole groups with two or more rewards that count, and those of them whose rewards are all equal. */
  compared_groups: number;
  equal_groups: number;
};

/** As `alidade stats` has it where --pass is not given. */
export const passReward = 1;

/** A page is parsed at one go, and the listener answers others between two. */
const rowsAtOnce = 500;
/** Groups have four to some hundreds of rows. */
const groupsAtOnce = 50;

type Reading = { tally: SetTally; rows: string | null; groups: string | null };

export class SetTallies {
  readonly #ledger: Ledger;
  readonly #readings = new Map<string, Reading>();

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
  }

  /** One at a time: two that read the same page would count it twice. Throws `not_found`, and the signal's reason. */
  async of(set: string, signal: AbortSignal): Promise<SetTally> {
    const reading = this.#readings.get(set) ?? { tally: nothingYet(), rows: null, groups: null };
    this.#readings.set(set, reading);
    await this.#readRows(set, reading, signal);
    await this.#readGroups(set, reading, signal);
    return reading.tally;
  }

  async #readRows(set: string, reading: Reading, signal: AbortSignal): Promise<void> {
    for (let found = rowsAtOnce; found === rowsAtOnce; ) {
      signal.throwIfAborted();
      const page = await this.#ledger.results(set, reading.rows, rowsAtOnce);
      for (const { row } of page) addRow(reading.tally, row);
      reading.rows = page.at(-1)?.cursor ?? reading.rows;
      found = page.length;
    }
  }

  async #readGroups(set: string, reading: Reading, signal: AbortSignal): Promise<void> {
    for (let found = groupsAtOnce; found === groupsAtOnce; ) {
      signal.throwIfAborted();
      const page = await this.#ledger.wholeGroups(set, reading.groups, groupsAtOnce);
      for (const group of page) addGroup(reading.tally, group);
      reading.groups = page.at(-1)?.cursor ?? reading.groups;
      found = page.length;
    }
  }
}

function nothingYet(): SetTally {
  return {
    measured: 0,
    reward_sum: 0,
    passed: 0,
    unmeasured: 0,
    sampled_tokens: 0,
    trainable_tokens: 0,
    compared_groups: 0,
    equal_groups: 0,
  };
}

function addRow(tally: SetTally, { state, reward, sampled_tokens, trainable_tokens }: ResultRow): void {
  tally.sampled_tokens += sampled_tokens;
  tally.trainable_tokens += trainable_tokens;
  if (reward === null) tally.unmeasured += state === "cancelled" ? 0 : 1;
  else {
    tally.measured += 1;
    tally.reward_sum += reward;
    tally.passed += reward >= passReward ? 1 : 0;
  }
}

/** What is in no baseline says nothing of the group. */
function addGroup(tally: SetTally, { rows }: WholeGroup): void {
  const rewards = rows.flatMap(({ reward, mask_reason }) => (reward === null || mask_reason !== null ? [] : [reward]));
  if (rewards.length < 2) return;
  tally.compared_groups += 1;
  tally.equal_groups += rewards.every((reward) => reward === rewards[0]) ? 1 : 0;
}
