/** Fills a planned row: ids, mask, logprobs, and what is known of each stretch of tokens. */

import type { UntrainedReason } from "../../base/schema/reasons/untrained.ts";
import type { CallRecord, NodeBlob, Trajectory, TreeNode } from "../../base/schema/trajectory.ts";
import { recordVersions } from "../../base/schema/versions/record-versions.ts";
import { type Aggregation, rowWeight } from "../rewards/row-weight.ts";
import { type Path, pieceLength, type RowPiece } from "../selection/selection.ts";
import type { Standing } from "../trained/loss-rules.ts";
import { policySteps, type StepOf } from "../trained/policy-step.ts";
import type { Judge } from "../trained/why-untrained.ts";
import type { TreeIndex } from "../tree/tree-index.ts";
import type { FlatRow, FlatSegment } from "./flat-row.ts";
import { placeRouting, routingByNode } from "./place-routing.ts";
import { placeSupport, supportByNode } from "./place-support.ts";
import type { Plan } from "./row-plan.ts";

export type RowContext = {
  trajectory: Trajectory;
  tree: TreeIndex;
  standing: Standing;
  /** Node id -> the path that trains it. */
  owners: Map<string, Path>;
  /** Why no row trains a node; null where one does. */
  whyNot: Judge;
  aggregation: Aggregation;
  rollout_trained_tokens: number;
};

export class RowWriter {
  readonly #context: RowContext;
  readonly #stepOf: StepOf;
  readonly #routing: Map<string, NodeBlob[]>;
  readonly #support: Map<string, NodeBlob[]>;
  readonly #temperatures: Map<string, number | null>;
  readonly #origin: Pick<FlatRow, "harness" | "harness_version" | "labels" | "status" | "stop_reason" | "seconds">;

  constructor(context: RowContext) {
    this.#context = context;
    const { harness, labels, status, stop_reason, calls } = context.trajectory;
    this.#origin = { harness: harness.name, harness_version: harness.version, labels, status, stop_reason, seconds: secondsOf(calls) };
    this.#temperatures = new Map(calls.map(({ call_id, sampling }) => [call_id, sampling.temperature ?? null]));
    this.#stepOf = policySteps(calls);
    this.#routing = routingByNode(context.trajectory);
    this.#support = supportByNode(context.trajectory);
  }

  *rows(plans: Plan[]): Generator<FlatRow> {
    for (const [index, plan] of plans.entries()) yield this.#write(plan, index, plans.length);
  }

  /** The first tokens of the path's prompt, as many as fit; of no path an empty row. */
  dummy(path: Path | null, maxTokens: number | null): FlatRow {
    const end = path?.pieces.findIndex(({ node }) => node.kind === "sampled") ?? 0;
    const pieces = firstTokens(path?.pieces.slice(0, end) ?? [], maxTokens ?? Number.POSITIVE_INFINITY);
    const row = this.#write({ paths: new Set(path === null ? [] : [path]), pieces, parents: null }, 0, 1);
    // Formats that split prompt and response want at least one token of response.
    return { ...row, dummy: true, prompt_length: Math.max(0, row.token_ids.length - 1), weight: 0 };
  }

  #write(plan: Plan, row_index: number, row_count: number): FlatRow {
    const row = this.#emptyRow(plan, row_index, row_count);
    const ends: number[] = [];
    let start = 0;
    for (const [index, piece] of plan.pieces.entries()) {
      row.segments.push(this.#fill(row, start, piece, plan));
      placePictures(row, start, piece);
      placeRouting(row, start, piece, this.#routing.get(piece.node.node_id) ?? []);
      placeSupport(row, start, piece, this.#support.get(piece.node.node_id) ?? []);
      if (plan.parents !== null) place(row, start, piece, ends[plan.parents[index] as number] ?? -1);
      start += piece.to - piece.from;
      ends.push(start - 1);
    }
    Object.assign(row, this.#sampledBy(row.segments.filter(({ trainable }) => trainable)));
    row.trained_tokens = row.loss_mask.reduce((sum: number, mask) => sum + mask, 0);
    row.weight = rowWeight(this.#context.aggregation, row.trained_tokens, row.rollout_trained_tokens);
    return row;
  }

  /** What holds for all of these segments. */
  #sampledBy(trained: FlatSegment[]): Pick<FlatRow, "policy_version" | "policy_step" | "temperature"> {
    return {
      policy_version: onlyOne(trained.map(({ policy_version }) => policy_version)),
      policy_step: onlyOne(trained.map(({ policy_step }) => policy_step)),
      temperature: onlyOne(trained.map(({ call_id }) => this.#temperatures.get(call_id) ?? null)),
    };
  }

  #emptyRow({ paths, pieces, parents }: Plan, row_index: number, row_count: number): FlatRow {
    const { trajectory, standing, rollout_trained_tokens } = this.#context;
    const [first] = paths;
    const length = pieceLength(pieces);
    const trained = pieces.findIndex(({ node }) => node.kind === "sampled" && [...paths].some((path) => path.trains(node)));
    return {
      schema_version: recordVersions.row.now,
      trajectory_id: trajectory.trajectory_id,
      session_id: trajectory.session_id,
      task_id: trajectory.task.id,
      rollout_id: trajectory.rollout_id,
      attempt: trajectory.attempt,
      group_id: trajectory.group.id,
      group_size: trajectory.group.size,
      sample_index: trajectory.group.sample_index,
      row_index,
      row_count,
      trace_id: first?.trace_id ?? "",
      agent: first?.agent ?? "main",
      token_ids: new Array<number>(length),
      loss_mask: new Array<0>(length).fill(0),
      logprobs: new Array<null>(length).fill(null),
      ...emptyTeacher(trajectory.teacher, length),
      position_ids: parents === null ? null : new Array<number>(length),
      parent_index: parents === null ? null : new Array<number>(length),
      segments: [],
      ...this.#origin,
      policy_version: null,
      policy_step: null,
      temperature: null,
      reward: standing.reward,
      in_baseline: standing.in_baseline,
      weight: 0,
      trained_tokens: 0,
      rollout_trained_tokens,
      prompt_length: pieceLength(trained < 0 ? pieces : pieces.slice(0, trained)),
      cut: [...paths].some((path) => path.cut),
      dummy: false,
    };
  }

  /** Writes the piece's tokens, which begin at `start`, and describes them. */
  #fill(row: FlatRow, start: number, { node, from, to, context }: RowPiece, plan: Plan): FlatSegment {
    const { kind, call_id, node_id, policy_version } = node;
    const whyNot = kind === "sampled" ? this.#whyNotHere(node, plan) : undefined;
    let trained = 0;
    for (let at = from; at < to; at++) row.token_ids[start + at - from] = node.token_ids[at] as number;
    for (let at = from; kind === "sampled" && at < to; at++) {
      row.logprobs[start + at - from] = node.logprobs?.[at] ?? null;
      if (row.teacher_logprobs) row.teacher_logprobs[start + at - from] = node.teacher?.logprobs[at] ?? null;
      if (row.teacher_top_ids) row.teacher_top_ids[start + at - from] = node.teacher?.top?.ids[at] ?? [];
      if (row.teacher_top_logprobs) row.teacher_top_logprobs[start + at - from] = node.teacher?.top?.logprobs[at] ?? [];
      if (whyNot !== null || node.forced?.[at] === true) continue;
      row.loss_mask[start + at - from] = 1;
      trained++;
    }
    return {
      start,
      end: start + to - from,
      kind,
      call_id,
      agent: this.#context.tree.agentOf(node),
      node_id,
      node_start: from,
      policy_version,
      policy_step: this.#stepOf(node),
      context,
      trainable: trained > 0,
      reason: whyNot === null && trained === 0 ? "forced" : (whyNot ?? null),
    };
  }

  #whyNotHere(node: TreeNode, { paths }: Plan): UntrainedReason | null {
    const { whyNot, owners } = this.#context;
    const owner = owners.get(node.node_id);
    return whyNot(node) ?? (owner !== undefined && paths.has(owner) ? null : "other_row");
  }
}

/** What stands where nothing was sampled, at every place. */
function emptyTeacher(teacher: Trajectory["teacher"], length: number): Partial<FlatRow> {
  if (teacher === undefined) return {};
  const lists = (): never[][] => Array.from({ length }, () => []);
  return {
    teacher_logprobs: new Array<null>(length).fill(null),
    ...(teacher.top_k !== undefined && { teacher_top_ids: lists(), teacher_top_logprobs: lists() }),
  };
}

/** A picture that the piece cuts is left out. */
function placePictures(row: FlatRow, start: number, { node, from, to }: RowPiece): void {
  for (const picture of node.media ?? [])
    if (picture.start >= from && picture.start + picture.length <= to)
      row.media = [...(row.media ?? []), { ...picture, start: start + picture.start - from }];
}

/** Position and parent of each token of the piece; `parent` is the row's index of the token before its first one. */
function place(row: FlatRow, start: number, { from, to }: RowPiece, parent: number): void {
  const { position_ids, parent_index } = row;
  if (position_ids === null || parent_index === null) return;
  const depth = parent < 0 ? 0 : (position_ids[parent] as number) + 1;
  for (let at = 0; at < to - from; at++) {
    position_ids[start + at] = depth + at;
    parent_index[start + at] = at === 0 ? parent : start + at - 1;
  }
}

/** Ends with a token of text: formats split off the last token, and would cut a picture. */
function firstTokens(pieces: RowPiece[], limit: number): RowPiece[] {
  const out: RowPiece[] = [];
  let left = limit;
  for (const piece of pieces) {
    if (left <= 0) break;
    const to = Math.min(piece.to, piece.from + left);
    out.push({ ...piece, to });
    left -= to - piece.from;
  }
  for (let last = out.pop(); last !== undefined; last = out.pop()) {
    const to = beforePictures(last, last.to);
    if (to > last.from) return [...out, { ...last, to }];
  }
  return out;
}

/** `end`, or the beginning of the pictures that reach there: pads without their picture are no context. */
function beforePictures({ node: { media = [] }, from }: RowPiece, end: number): number {
  const before = media.reduceRight((to, { start, length }) => (start < to && to <= start + length ? start : to), end);
  return Math.max(from, before);
}

function onlyOne<T>(values: T[]): T | null {
  const [first = null, ...others] = new Set(values);
  return others.length === 0 ? first : null;
}

function secondsOf(calls: CallRecord[]): number | null {
  const ends = calls.flatMap(({ times: { finished } }) => finished ?? []);
  if (ends.length === 0) return null;
  const earliest = calls.reduce((least, { times }) => Math.min(least, times.begun), Number.POSITIVE_INFINITY);
  return (ends.reduce((most, end) => Math.max(most, end), 0) - earliest) / 1000;
}
