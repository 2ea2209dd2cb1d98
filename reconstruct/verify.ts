/**
 * Checks a trajectory against an independent recording of the traffic between proxy and engine. For each call with
 * trainable tokens: the path before its sample is the recorded prompt, its ids and logprobs are the recorded ones, and no
 * other call claims the same exchange. Any other trainable token is a mismatch.
 */
import type { Trajectory, TreeNode } from "../base/schema/trajectory.ts";
import { commonPrefix } from "../base/tokens/prefix.ts";
import type { FlatRow, FlatSegment } from "./rows/flat-row.ts";
import { recordedReasonOf } from "./trained/why-untrained.ts";
import { TokenPaths } from "./tree/token-paths.ts";

/** One generation as a relay between proxy and engine saw it; ids in order, logprobs in nats. */
export type EngineExchange = { prompt_token_ids: number[]; token_ids: number[]; logprobs: (number | null)[] | null };

export type Mismatch = { call_id: string | null; node_id: string | null; what: string };

export type Verification = {
  ok: boolean;
  /** Calls with trainable tokens that were proven, and those tokens. */
  calls: number;
  trainable_tokens: number;
  /** Exchanges that no trainable call claimed: failed, undelivered, auxiliary ones. */
  unclaimed_exchanges: number;
  mismatches: Mismatch[];
};

/** `tolerance` in nats; 0 where the logprobs went through JSON only. */
export function verifyTrajectory(trajectory: Trajectory, exchanges: EngineExchange[], tolerance = 0): Verification {
  const report: Verification = { ok: false, calls: 0, trainable_tokens: 0, unclaimed_exchanges: 0, mismatches: [] };
  const recording = new Recording(exchanges, tolerance);
  report.mismatches.push(...findStrayTrainables(trajectory));
  for (const sample of samplesOf(trajectory)) {
    if (sample.trained === 0) continue;
    const problem = sample.problem ?? recording.claimAll(sample);
    if (problem === null) {
      report.calls++;
      report.trainable_tokens += sample.trained;
    } else report.mismatches.push({ call_id: sample.call_id, node_id: sample.node_id, what: problem });
  }
  report.unclaimed_exchanges = recording.unclaimed;
  report.ok = report.mismatches.length === 0;
  return report;
}

/**
 * Do the rows train exactly the tree's trainable tokens (or fewer, with a reason), each once, in its own context? A
 * context that a segment calls `same_text` is compared token by token only as far as the row says where it is from.
 */
export function verifyRows(trajectory: Trajectory, rows: Iterable<FlatRow>): Mismatch[] {
  const mismatches: Mismatch[] = [];
  const paths = new TokenPaths(trajectory);
  const nodes = new Map(trajectory.nodes.map((node) => [node.node_id, node]));
  const trainedIn = new Map<string, number>();
  for (const row of rows) {
    let covered = 0;
    for (const segment of row.segments) {
      const fail = (what: string) =>
        mismatches.push({ call_id: segment.call_id, node_id: segment.node_id, what: `row ${row.row_index}: ${what}` });
      const node = nodes.get(segment.node_id);
      if (node === undefined || segment.start !== covered) {
        fail("its segments do not follow each other through the tree");
        break;
      }
      covered = segment.end;
      const wrong = findDifference(row, segment, node) ?? findWrongContext(row, segment, paths);
      if (wrong !== null) fail(wrong);
      if (!row.loss_mask.slice(segment.start, segment.end).includes(1)) continue;
      if (trainedIn.has(node.node_id)) fail(`its tokens are trained in row ${trainedIn.get(node.node_id)} too`);
      trainedIn.set(node.node_id, row.row_index);
    }
    if (covered !== row.token_ids.length)
      mismatches.push({ call_id: null, node_id: null, what: `row ${row.row_index}: it has tokens outside its segments` });
  }
  return mismatches;
}

function findDifference(row: FlatRow, { start, end, node_start }: FlatSegment, node: TreeNode): string | null {
  for (let at = start; at < end; at++) {
    const index = node_start + at - start;
    const mayTrain = node.kind === "sampled" && (mayBeTrained(node) || node.reason === "masked_rollout") && node.forced?.[index] !== true;
    if (row.token_ids[at] !== node.token_ids[index]) return `token ${at} is not the one of the tree`;
    if (row.loss_mask[at] === 1 && !mayTrain) return `token ${at} is trained, which the tree does not allow`;
    if (row.loss_mask[at] === 1 && row.logprobs[at] === null) return `token ${at} is trained without a logprob`;
    if (row.logprobs[at] !== (node.logprobs?.[index] ?? null)) return `token ${at} has another logprob than the tree`;
  }
  return null;
}

/** The tokens before a segment, along its parents, are those before its node in the tree: what the engine saw. */
function findWrongContext(row: FlatRow, segment: FlatSegment, paths: TokenPaths): string | null {
  if (segment.context === "same_text" || segment.start === segment.end) return null;
  const before = contextOf(row, segment.start);
  const path = paths.tokens(segment.node_id);
  const node = paths.nodes(segment.node_id).at(-1) as TreeNode;
  const expected = path.slice(0, path.length - node.token_ids.length + segment.node_start);
  return sameIds(before, expected) ? null : `the tokens before token ${segment.start} are not its path in the tree`;
}

function contextOf(row: FlatRow, at: number): number[] {
  if (row.parent_index === null) return row.token_ids.slice(0, at);
  const before: number[] = [];
  for (let index = row.parent_index[at] ?? -1; index >= 0; index = row.parent_index[index] ?? -1)
    before.push(row.token_ids[index] as number);
  return before.reverse();
}

/** By some trainer: the record does not forbid it. */
function mayBeTrained(node: TreeNode): boolean {
  return recordedReasonOf(node) === null;
}

/** Only what was sampled can be trained. */
function findStrayTrainables(trajectory: Trajectory): Mismatch[] {
  return trajectory.nodes
    .filter((node) => node.trainable && node.kind !== "sampled")
    .map(({ call_id, node_id, kind }) => ({ call_id, node_id, what: `a ${kind} node is marked trainable` }));
}

type VerifiedSample = {
  call_id: string;
  node_id: string;
  prompt: number[];
  token_ids: number[];
  logprobs: (number | null)[];
  /** Where each exchange begins that sampled a part of it. */
  starts: number[];
  /** Tokens that some trainer may train. */
  trained: number;
  problem: string | null;
};

/** Each call's sample, put together again from the nodes that a split made of it. */
function samplesOf(trajectory: Trajectory): VerifiedSample[] {
  const paths = new TokenPaths(trajectory);
  const parts = new Map(trajectory.calls.map(({ call_id, policy }) => [call_id, policy.parts?.map(({ start }) => start)]));
  const samples = new Map<string, VerifiedSample>();
  const ends = new Map<string, string>();
  for (const node of trajectory.nodes) {
    if (node.kind !== "sampled") continue;
    const sample = samples.get(node.call_id) ?? start(node);
    if (samples.has(node.call_id) && ends.get(node.call_id) !== node.parent_id)
      sample.problem = "its sample stands in the tree at two places";
    samples.set(node.call_id, sample);
    ends.set(node.call_id, node.node_id);
    sample.token_ids.push(...node.token_ids);
    sample.logprobs.push(...(node.logprobs ?? node.token_ids.map(() => null)));
    if (mayBeTrained(node)) sample.trained += node.token_ids.length - (node.forced?.filter(Boolean).length ?? 0);
  }
  return [...samples.values()];

  function start(node: TreeNode): VerifiedSample {
    const prompt = node.parent_id === null ? [] : paths.tokens(node.parent_id);
    const starts = parts.get(node.call_id) ?? [0];
    return { call_id: node.call_id, node_id: node.node_id, prompt, token_ids: [], logprobs: [], starts, trained: 0, problem: null };
  }
}

/** The exchanges, each to be claimed by one call. */
class Recording {
  readonly #byIds = new Map<string, EngineExchange[]>();
  readonly #tolerance: number;
  readonly #all: EngineExchange[];

  constructor(exchanges: EngineExchange[], tolerance: number) {
    this.#all = exchanges;
    this.#tolerance = tolerance;
    for (const exchange of exchanges) {
      const key = keyOf(exchange.prompt_token_ids, exchange.token_ids);
      this.#byIds.set(key, [...(this.#byIds.get(key) ?? []), exchange]);
    }
  }

  get unclaimed(): number {
    let left = 0;
    for (const exchanges of this.#byIds.values()) left += exchanges.length;
    return left;
  }

  /** Takes the exchanges that this sample came from: one, or one for each part of one that weight updates interrupted. */
  claimAll(sample: VerifiedSample): string | null {
    for (const [at, start] of sample.starts.entries()) {
      const end = sample.starts[at + 1] ?? null;
      const part = partOf(sample, start, end ?? sample.token_ids.length);
      const problem = end === null ? this.claim(part) : this.#claimBeginning(part);
      if (problem !== null) return problem;
    }
    return null;
  }

  /** An interrupted exchange may have brought more than was kept. */
  #claimBeginning(part: SampledPart): string | null {
    for (const same of this.#byIds.values()) {
      const index = same.findIndex(
        ({ prompt_token_ids, token_ids, logprobs }) =>
          sameIds(prompt_token_ids, part.prompt) &&
          sameIds(token_ids.slice(0, part.token_ids.length), part.token_ids) &&
          this.#sameLogprobs(logprobs?.slice(0, part.token_ids.length) ?? null, part.logprobs),
      );
      if (index < 0) continue;
      same.splice(index, 1);
      return null;
    }
    return this.#nearest(part);
  }

  /** Takes the exchange that this sample came from; else says what is wrong. */
  claim(sample: SampledPart): string | null {
    const same = this.#byIds.get(keyOf(sample.prompt, sample.token_ids)) ?? [];
    const index = same.findIndex((exchange) => this.#sameLogprobs(exchange.logprobs, sample.logprobs));
    if (index >= 0) {
      same.splice(index, 1);
      return null;
    }
    return same.length > 0 ? "an exchange has its ids, but other logprobs" : this.#nearest(sample);
  }

  #sameLogprobs(recorded: (number | null)[] | null, claimed: (number | null)[]): boolean {
    if (recorded === null || recorded.length !== claimed.length) return false;
    return recorded.every((logprob, at) => {
      const other = claimed[at] as number | null;
      return logprob === null || other === null ? logprob === other : Math.abs(logprob - other) <= this.#tolerance;
    });
  }

  /** The nearest exchange and its distance, to help find the cause. */
  #nearest(sample: SampledPart): string {
    const claimed = [...sample.prompt, ...sample.token_ids];
    let best = 0;
    for (const { prompt_token_ids, token_ids } of this.#all)
      best = Math.max(best, commonPrefix([...prompt_token_ids, ...token_ids], claimed));
    const where = best < sample.prompt.length ? "of its prompt" : "of its prompt and sample";
    return `no unclaimed exchange has its ${sample.prompt.length} prompt and ${sample.token_ids.length} sampled ids; the nearest one has the first ${best} ${where}`;
  }
}

type SampledPart = Pick<VerifiedSample, "prompt" | "token_ids" | "logprobs">;

function partOf({ prompt, token_ids, logprobs }: SampledPart, start: number, end: number): SampledPart {
  return {
    prompt: start === 0 ? prompt : [...prompt, ...token_ids.slice(0, start)],
    token_ids: token_ids.slice(start, end),
    logprobs: logprobs.slice(start, end),
  };
}

const keyOf = (prompt: number[], sampled: number[]): string => `${prompt.join()}|${sampled.join()}`;

const sameIds = (a: number[], b: number[]): boolean => a.length === b.length && commonPrefix(a, b) === a.length;
