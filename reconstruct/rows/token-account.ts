/** Where every sampled token of a rollout went: into training, or under the reason why not. */
import type { UntrainedReason } from "../../base/schema/reasons/untrained.ts";
import type { CallRecord, Fidelity, Trajectory, TreeNode } from "../../base/schema/trajectory.ts";
import type { RowPiece } from "../selection/selection.ts";
import { callRules, firstReason } from "../trained/rules.ts";
import { type Judge, recordedReasonOf } from "../trained/why-untrained.ts";

export type TokenAccount = {
  /** `trained` and all of `excluded` together: those that are known, and were sampled by this rollout. */
  sampled: number;
  /** Tokens of another rollout's record that were given again (`replayed_from`): they are in no other count of tokens here. */
  replayed: number;
  /** Reason (`UncountedReason`) -> calls that sampled an unknown number of tokens, which are in no count here. */
  uncounted: Record<string, number>;
  trained: number;
  /** Reason (`base/schema/reasons/untrained.ts`) -> tokens. */
  excluded: Record<string, number>;
  /** Kind of call -> tokens that are `auxiliary` or `left_out_class` for it. */
  by_class: Record<string, number>;
  /** Tokens of all rows, and of the parts of the tree that they are made of, each once: the quotient is the row inflation. */
  row_tokens: number;
  tree_tokens: number;
};

export type CountedTokens = Omit<TokenAccount, "row_tokens" | "tree_tokens"> & {
  /** Call id -> first reason, for calls of which nothing is trained. */
  untrained: Map<string, UntrainedReason>;
};

/** Adds up the accounts of a run's rollouts; `excluded` reason by reason. */
export function addAccounts(accounts: Iterable<TokenAccount>): TokenAccount {
  const sum = emptyAccount();
  for (const { sampled, replayed, trained, excluded, by_class, uncounted, row_tokens, tree_tokens } of accounts) {
    sum.sampled += sampled;
    sum.replayed += replayed;
    sum.trained += trained;
    sum.row_tokens += row_tokens;
    sum.tree_tokens += tree_tokens;
    for (const [reason, tokens] of Object.entries(excluded)) sum.excluded[reason] = (sum.excluded[reason] ?? 0) + tokens;
    for (const [reason, calls] of Object.entries(uncounted)) sum.uncounted[reason] = (sum.uncounted[reason] ?? 0) + calls;
    for (const [kind, tokens] of Object.entries(by_class)) sum.by_class[kind] = (sum.by_class[kind] ?? 0) + tokens;
  }
  return sum;
}

/** Tokens that a trainer computes for each token of the tree; null without rows. */
export function rowInflationOf({ row_tokens, tree_tokens }: Pick<TokenAccount, "row_tokens" | "tree_tokens">): number | null {
  return tree_tokens === 0 ? null : row_tokens / tree_tokens;
}

const emptyCounts = (): Omit<CountedTokens, "untrained"> => ({
  sampled: 0,
  replayed: 0,
  trained: 0,
  excluded: {},
  by_class: {},
  uncounted: {},
});
const emptyAccount = (): TokenAccount => ({ ...emptyCounts(), row_tokens: 0, tree_tokens: 0 });

/** Every sampled token once: in the tree by its node, outside of it (no ids) by what the engine counted. */
export function countTokens(trajectory: Accountable, whyNot: Judge): CountedTokens {
  const account = new Account(trajectory.calls);
  for (const node of trajectory.nodes) if (node.kind === "sampled") account.take(node, whyNot(node));
  for (const outside of tokensOutside(trajectory)) account.takeOutside(outside);
  for (const call of trajectory.calls) account.takeUncounted(call);
  for (const { sampled_tokens } of trajectory.fidelity.damaged) account.takeLost(sampled_tokens ?? 0);
  return { ...account.total, untrained: account.untrained };
}

/** `tokens`: by the ids of the sample, else by what the engine counted. */
export type OutsideCall = { call: CallRecord; tokens: number; reason: UntrainedReason };

/** Without ids of its prompt or its sample a call stands nowhere in the tree; the engine may still have counted. */
export function tokensOutside(trajectory: Accountable): OutsideCall[] {
  const inTree = new Set(trajectory.nodes.flatMap(({ kind, call_id }) => (kind === "sampled" ? [call_id] : [])));
  const outside = trajectory.calls.filter(({ call_id }) => !inTree.has(call_id));
  return outside.map((call) => ({
    call,
    tokens: call.sampled_length ?? call.usage?.sampled_tokens ?? 0,
    reason: firstReason(callRules, call, trajectory) ?? "no_token_ids",
  }));
}

/** The facts of a trajectory by which its tokens are counted. */
export type Accountable = Pick<Trajectory, "calls" | "nodes" | "purpose" | "sandboxed" | "train_classes"> & {
  fidelity: Pick<Fidelity, "damaged">;
};

/** Ids of calls that have their answers from a record: another rollout sampled them. */
export function replayedIn(calls: readonly Pick<CallRecord, "call_id" | "replayed_from">[]): Set<string> {
  return new Set(calls.flatMap(({ call_id, replayed_from }) => (replayed_from === null ? [] : [call_id])));
}

export function measureRows(rows: Iterable<{ pieces: RowPiece[] }>): Pick<TokenAccount, "row_tokens" | "tree_tokens"> {
  let row_tokens = 0;
  // Pieces reach to the end of their node: of two pieces of one node the longer one has all of the other.
  const longest = new Map<TreeNode, number>();
  for (const { pieces } of rows)
    for (const { node, from, to } of pieces) {
      row_tokens += to - from;
      longest.set(node, Math.max(longest.get(node) ?? 0, to - from));
    }
  return { row_tokens, tree_tokens: longest.values().reduce((sum, length) => sum + length, 0) };
}

class Account {
  readonly total = emptyCounts();
  readonly untrained = new Map<string, UntrainedReason>();
  readonly #trained = new Set<string>();
  readonly #classes: ReadonlyMap<string, string>;
  readonly #replayed: ReadonlySet<string>;

  constructor(calls: readonly CallRecord[]) {
    this.#replayed = replayedIn(calls);
    this.#classes = new Map(calls.map((call) => [call.call_id, call.request_class]));
  }

  take(node: TreeNode, reason: UntrainedReason | null): void {
    const { length } = node.token_ids;
    if (this.#replayed.has(node.call_id)) {
      this.total.replayed += length;
      this.untrained.set(node.call_id, reason ?? "replayed");
      return;
    }
    // A forced token is never trained, whatever holds for the rest of its call.
    const isOpen = recordedReasonOf(node) === null || reason !== node.reason;
    const forced = isOpen ? (node.forced?.filter(Boolean).length ?? 0) : 0;
    this.total.sampled += length;
    this.#exclude(node.call_id, "forced", forced);
    if (reason !== null) this.#exclude(node.call_id, reason, length - forced);
    else if (length > forced) {
      this.total.trained += length - forced;
      this.#train(node.call_id);
    }
  }

  takeOutside({ call, tokens, reason }: OutsideCall): void {
    if (call.replayed_from !== null) this.total.replayed += tokens;
    else {
      this.total.sampled += tokens;
      this.#exclude(call.call_id, reason, tokens);
    }
    if (call.output !== null) this.untrained.set(call.call_id, reason);
  }

  /** Tokens of a call that the log has lost. */
  takeLost(tokens: number): void {
    if (tokens === 0) return;
    this.total.sampled += tokens;
    this.total.excluded.damaged = (this.total.excluded.damaged ?? 0) + tokens;
  }

  takeUncounted({ uncounted }: CallRecord): void {
    if (uncounted !== null) this.total.uncounted[uncounted] = (this.total.uncounted[uncounted] ?? 0) + 1;
  }

  #exclude(callId: string, reason: UntrainedReason, tokens: number): void {
    if (tokens === 0) return;
    this.total.excluded[reason] = (this.total.excluded[reason] ?? 0) + tokens;
    const kind = reason === "auxiliary" || reason === "left_out_class" ? this.#classes.get(callId) : undefined;
    if (kind !== undefined) this.total.by_class[kind] = (this.total.by_class[kind] ?? 0) + tokens;
    // What a grammar forced explains a call only where nothing else of it was sampled.
    const known = this.untrained.get(callId);
    if (!this.#trained.has(callId) && (known === undefined || known === "forced")) this.untrained.set(callId, reason);
  }

  #train(callId: string): void {
    this.#trained.add(callId);
    this.untrained.delete(callId);
  }
}
