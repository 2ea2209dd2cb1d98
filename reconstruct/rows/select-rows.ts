/**
 * Trajectory -> rows, in this order: select paths, cut the ones that are too long, filter calls, and only then give each
 * trained token to one row. Any other order would give tokens to rows that are dropped afterwards.
 *
 *     const { rows, row_count, left_out, tokens } = selectRows(trajectory, { strategy: "strict", maxTokens: 32_768 });
 *     for (const row of rows) …
 *
 * For exporters: `rows` is made row by row and may be read again; `row_count` is known before. Where a format splits
 * prompt and response, shifts by one or wants turns, `alignment-families.ts` does it. A rollout of which nothing fits
 * gives one row with `dummy: true` and mask 0; one that trains nothing for another reason (masked, null logprobs) gives
 * no row, and `dummyRow` makes a place holder for formats that count positions. Every sampled token is in `tokens`:
 * trained, or under its reason.
 */
import type { UntrainedReason } from "../../base/schema/reasons/untrained.ts";
import type { Trajectory, TreeNode } from "../../base/schema/trajectory.ts";
import { countBy } from "../count-by.ts";
import type { Aggregation } from "../rewards/row-weight.ts";
import { selectionNamed, type selections } from "../selection/index.ts";
import { type Path, pieceLength, type Selection } from "../selection/selection.ts";
import { type LossRules, type Standing, standingOf } from "../trained/loss-rules.ts";
import type { Trainer } from "../trained/rules.ts";
import { defaultTrainer, hasChoice, type Judge, toJudge } from "../trained/why-untrained.ts";
import { TreeIndex } from "../tree/tree-index.ts";
import type { FlatRow } from "./flat-row.ts";
import { type Plan, planPacked, planRows } from "./row-plan.ts";
import { countTokens, measureRows, type TokenAccount } from "./token-account.ts";
import { RowWriter } from "./write-row.ts";

export type SelectOptions = LossRules &
  Trainer & {
    /** Which paths become rows (`selection/index.ts`). */
    strategy: (typeof selections)[number]["name"] | Selection;
    /** Tokens a row may have; a longer one keeps its exact prefix up to the end of a call, never its end. null: no limit. */
    maxTokens: number | null;
    /** How the trainer averages its loss; decides `weight`. */
    aggregation: Aggregation;
  };

export const defaultSelectOptions: SelectOptions = {
  ...defaultTrainer,
  strategy: "strict",
  maxTokens: null,
  aggregation: "token_mean",
  cutOff: {},
  unmeasured: "null",
};

/** An undefined option means "not given". */
function withDefaults(options: Partial<SelectOptions>): SelectOptions {
  const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
  return { ...defaultSelectOptions, ...given };
}

export type SelectedRows = {
  rows: Iterable<FlatRow>;
  row_count: number;
  /** Tokens before the first sampled one, by row; all tokens of a row with `dummy`. Takes less time than the rows. */
  prompts: Iterable<number[]>;
  /** Reason -> calls without any trained token in any row. */
  left_out: Record<string, number>;
  tokens: TokenAccount;
  /** Loss, baseline and reward of the rollout under the rules. */
  standing: Omit<Standing, "rule">;
};

export function selectRows(trajectory: Trajectory, options: Partial<SelectOptions> = {}): SelectedRows {
  const settings = withDefaults(options);
  const selection = typeof settings.strategy === "string" ? selectionNamed(settings.strategy) : settings.strategy;
  const standing = standingOf(trajectory, settings);
  const judge = toJudge(trajectory, settings, standing);
  const tree = new TreeIndex(trajectory);
  const selected = selection.paths(tree).filter((path) => path.pieces.findLast(({ node }) => isTrained(node, path, judge)));
  // Trimmed first, so that only what would have been trained can make a row too long; and again where it was cut.
  const fitting = selected.map((path) => cutToLimit(trimToTrained(path, judge), settings.maxTokens, tree));
  const kept = dropCovered(fitting.map((path) => trimToTrained(path, judge)));
  const owners = chooseOwners(kept);
  const plans = selection.packed ? planPacked(kept, settings.maxTokens) : planRows(kept);
  const whyNot = placed(judge, { selected, owners });
  const { untrained, ...counts } = countTokens(trajectory, whyNot);
  const { aggregation } = settings;
  const writer = new RowWriter({ trajectory, tree, standing, owners, whyNot, aggregation, rollout_trained_tokens: counts.trained });
  const place =
    plans.length === 0 && selected.length > 0 ? writer.dummy({ ...(selected[0] as Path), cut: true }, settings.maxTokens) : null;
  return {
    rows: { [Symbol.iterator]: () => (place === null ? writer.rows(plans) : [place].values()) },
    row_count: place === null ? plans.length : 1,
    prompts: { [Symbol.iterator]: () => (place === null ? plans.values().map(tokensBeforeSample) : [place.token_ids].values()) },
    // A call counts once, under its first reason; one that is trained anywhere is not left out.
    left_out: countBy(untrained.values(), (reason) => reason),
    tokens: { ...counts, ...measureRows(plans) },
    standing: { in_loss: standing.in_loss, in_baseline: standing.in_baseline, reward: standing.reward },
  };
}

/**
 * A row with mask 0 that holds a rollout's place where a trainer counts positions: the first tokens of its first path,
 * and none where no ids are known (padding is the exporter's to choose).
 */
export function dummyRow(trajectory: Trajectory, options: Partial<SelectOptions> = {}): FlatRow {
  const { maxTokens, aggregation, ...settings } = withDefaults(options);
  const standing = standingOf(trajectory, settings);
  const tree = new TreeIndex(trajectory);
  const whyNot = toJudge(trajectory, settings, standing);
  const writer = new RowWriter({ trajectory, tree, standing, owners: new Map(), whyNot, aggregation, rollout_trained_tokens: 0 });
  return writer.dummy(selectionNamed("strict").paths(tree)[0] ?? null, maxTokens);
}

function tokensBeforeSample({ pieces }: Plan): number[] {
  const end = pieces.findIndex(({ node }) => node.kind === "sampled");
  return pieces.slice(0, end === -1 ? undefined : end).flatMap(({ node, from, to }) => node.token_ids.slice(from, to));
}

/** The judge's answer, and where that is none, whether some row has the node. */
function placed(judge: Judge, { selected, owners }: { selected: Path[]; owners: Map<string, Path> }): Judge {
  const reachable = new Set<string>();
  for (const path of selected)
    for (const { node } of path.pieces) if (node.kind === "sampled" && path.trains(node)) reachable.add(node.node_id);
  const whyNoRow = (nodeId: string): UntrainedReason | null =>
    owners.has(nodeId) ? null : reachable.has(nodeId) ? "over_length" : "not_selected";
  return (node) => judge(node) ?? whyNoRow(node.node_id);
}

/** Does this path train some of the node's tokens, if it is the one that gets them? */
function isTrained(node: TreeNode, path: Path, judge: Judge): boolean {
  return hasChoice(node) && path.trains(node) && judge(node) === null;
}

/** Up to the last end of a whole sample within the limit: half a turn is no action of the policy. */
function cutToLimit(path: Path, maxTokens: number | null, tree: TreeIndex): Path {
  if (maxTokens === null || pieceLength(path.pieces) <= maxTokens) return path;
  let [length, keep, ofCall] = [0, 0, 0];
  for (const [index, { node, from, to }] of path.pieces.entries()) {
    length += to - from;
    if (length > maxTokens) break;
    const continues = node.kind === "sampled" && path.pieces[index - 1]?.node.call_id === node.call_id;
    ofCall = node.kind !== "sampled" ? 0 : (continues ? ofCall : 0) + to - from;
    if (node.kind === "sampled" && ofCall === tree.call(node.call_id)?.sampled_length) keep = index + 1;
  }
  return { ...path, pieces: path.pieces.slice(0, keep), cut: true };
}

/** Tokens after the last trained one cost the trainer and teach nothing. */
function trimToTrained(path: Path, judge: Judge): Path {
  const last = path.pieces.findLastIndex(({ node }) => isTrained(node, path, judge));
  return { ...path, pieces: path.pieces.slice(0, last + 1) };
}

/** A path that is the beginning of another one has nothing of its own; so has a path without a trained token. */
function dropCovered(paths: Path[]): Path[] {
  const inner = new Map<string, Set<string>>();
  for (const { pieces, scope, trains } of paths) {
    const seen = inner.get(scope) ?? new Set();
    // Only tokens that a path may train can end it, so no other position is looked up.
    for (const { node } of pieces.slice(0, -1)) if (node.kind === "sampled" && trains(node)) seen.add(node.node_id);
    inner.set(scope, seen);
  }
  return paths.filter(({ pieces, scope }) => {
    const end = pieces.at(-1)?.node.node_id;
    const seen = inner.get(scope);
    if (end === undefined || seen?.has(end)) return false;
    seen?.add(end);
    return true;
  });
}

/**
 * Node id -> the path that trains it: the path with most of the node's call, so that a turn whose second half was dropped
 * by a later context is still trained in one piece. On a tie: the first path.
 */
function chooseOwners(paths: Path[]): Map<string, Path> {
  const owners = new Map<string, { path: Path; tokens: number }>();
  for (const path of paths) {
    const tokensOfCall = new Map<string, number>();
    const sampled = path.pieces.filter(({ node }) => node.kind === "sampled" && path.trains(node));
    for (const { node, from, to } of sampled) tokensOfCall.set(node.call_id, (tokensOfCall.get(node.call_id) ?? 0) + to - from);
    for (const { node } of sampled) {
      const tokens = tokensOfCall.get(node.call_id) ?? 0;
      if (tokens > (owners.get(node.node_id)?.tokens ?? 0)) owners.set(node.node_id, { path, tokens });
    }
  }
  return new Map([...owners].map(([nodeId, { path }]) => [nodeId, path]));
}
