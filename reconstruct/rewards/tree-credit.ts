/**
 * Credit by turn for a group whose rollouts are a tree: forks of one rollout share its first turns, and are leaves behind them.
 * A turn's value is the mean over the leaves behind it. Both ways are linear in the rollouts' own advantages, whatever method
 * made these, and where nothing was forked `tree` is the rollout's own advantage.
 *
 * tree: the mean of the advantages of all leaves behind the turn: what one row a leaf would train the turn with, on the
 * average. siblings: that, and how the turn compares with the other turns at its place: its mean less that of all leaves
 * behind the turn before it. So Tree-GRPO (Ji et al. 2025, arXiv:2509.21240) adds the comparison within a tree to the one
 * between trees, and TreePO (Li et al. 2025, arXiv:2508.17445) compares a segment with those that share its beginning.
 */
export const credits = ["outcome", "tree", "siblings"] as const;

/** outcome: each token of a rollout has the rollout's advantage. */
export type Credit = (typeof credits)[number];

/** A rollout: its advantage (null: it has none) and all of its calls, those that it replayed under their own ids. */
export type CreditLeaf = { advantage: number | null; calls: readonly { call_id: string; parent_call_id: string | null }[] };

/** By call id. A call without a leaf that has an advantage is not there. */
export function treeCredit(leaves: readonly CreditLeaf[], credit: Exclude<Credit, "outcome">): Map<string, number> {
  const behind = new Map<string, Mean>();
  const parents = new Map<string, string | null>();
  const all = new Mean();
  for (const { advantage, calls } of leaves) {
    if (advantage !== null) all.add(advantage);
    for (const { call_id, parent_call_id } of calls) {
      parents.set(call_id, parent_call_id);
      if (advantage === null) continue;
      const known = behind.get(call_id) ?? new Mean();
      behind.set(call_id, known);
      known.add(advantage);
    }
  }
  const found = new Map<string, number>();
  for (const [call_id, mean] of behind) {
    const parent = parents.get(call_id) ?? null;
    const beside = parent === null ? all : (behind.get(parent) ?? all);
    found.set(call_id, credit === "tree" ? mean.value : 2 * mean.value - beside.value);
  }
  return found;
}

class Mean {
  #sum = 0;
  #count = 0;

  add(value: number): void {
    this.#sum += value;
    this.#count++;
  }

  get value(): number {
    return this.#sum / this.#count;
  }
}
