/**
 * Maps the nodes of the tree to the experts that their tokens took. Tokens that several calls share have the numbers of the first call. A
 * later call found them in the engine's cache, or computed them again, perhaps with newer weights. Calls of another model than the
 * session's give no numbers for tokens of its own calls.
 */
import type { RoutingRecord } from "../../base/schema/log/token-numbers.ts";
import type { NodeBlob, Trajectory } from "../../base/schema/trajectory.ts";
import type { CallHistory } from "../log/call-history.ts";
import { isOfOtherPolicy } from "../log/policy-of.ts";
import type { Branch, TokenTree } from "./token-tree.ts";

export const routedExperts = "routed_experts";

/** `calls` in rank order. */
export function routingBlobs(calls: readonly CallHistory[], tree: TokenTree, idOf: ReadonlyMap<Branch, string>): NodeBlob[] {
  const byId = new Map(calls.map((call) => [call.call_id, call]));
  const covered = new Map<Branch, number>();
  const [own = [], others = []] = [false, true].map((isOther) => calls.filter((call) => isOfOtherPolicy(call) === isOther));
  const blobsOf = (call: CallHistory, closed: ReadonlySet<Branch>): NodeBlob[] => {
    const end = tree.sampleEnd.get(call.call_id);
    const told = end === undefined ? [] : toldOf(call, byId);
    return end === undefined || told.length === 0 ? [] : blobsOfPath(end, told, { covered, closed, idOf });
  };
  const closed = new Set(own.flatMap((call) => pathTo(tree.sampleEnd.get(call.call_id) ?? null)));
  return [...own.flatMap((call) => blobsOf(call, new Set())), ...others.flatMap((call) => blobsOf(call, closed))];
}

/** All branches from this one to the root. */
function pathTo(end: Branch | null): Branch[] {
  const path: Branch[] = [];
  for (let branch = end; branch !== null; branch = branch.parent) path.push(branch);
  return path;
}

/** Rows of one file, for the tokens `from` to before `to` of a path. */
type ToldRows = { from: number; to: number; routing: RoutingRecord };

/** Returns the call's own rows and all earlier ones, back to the first token; [] if a part is lost. */
function toldOf(call: CallHistory, byId: ReadonlyMap<string, CallHistory>): ToldRows[] {
  const told: ToldRows[] = [];
  let to = Number.POSITIVE_INFINITY;
  for (let one: CallHistory | undefined = call; one !== undefined; one = baseOf(one, byId)) {
    const routing = one.finished?.routing;
    const end = routing ? Math.min(to, routing.start + routing.rows) : 0;
    if (!routing || (end < to && one !== call)) return [];
    if (routing.start < end) told.push({ from: routing.start, to: end, routing });
    to = Math.min(end, routing.start);
    if (to === 0) return told;
  }
  return [];
}

/** A base must come earlier in the log, so following bases ends. */
function baseOf({ begun, finished }: CallHistory, byId: ReadonlyMap<string, CallHistory>): CallHistory | undefined {
  const base = byId.get(finished?.routing?.base_call_id ?? "");
  return base !== undefined && base.begun.ordinal < begun.ordinal ? base : undefined;
}

type RoutedPaths = {
  /** How many of a branch's first tokens have their experts. */
  covered: Map<Branch, number>;
  /** Branches that take no experts. If one is closed, all branches above it are too. */
  closed: ReadonlySet<Branch>;
  idOf: ReadonlyMap<Branch, string>;
};

function blobsOfPath(end: Branch, told: readonly ToldRows[], { covered, closed, idOf }: RoutedPaths): NodeBlob[] {
  const blobs: NodeBlob[] = [];
  // If a branch is complete, all branches above it are too.
  for (let branch = end; branch.parent !== null && covered.get(branch) !== branch.depth - branch.parent.depth; branch = branch.parent) {
    if (closed.has(branch)) break;
    const begin = branch.parent.depth;
    const known = covered.get(branch) ?? 0;
    const node_id = idOf.get(branch) as string;
    const of = told.flatMap((one) => within(one, begin + known, branch.depth));
    for (const { from, to, routing } of of) blobs.push(toBlob(routing, node_id, from - begin, to - begin, from - routing.start));
    covered.set(branch, Math.max(known, ...of.map(({ to }) => to - begin)));
  }
  return blobs.reverse();
}

function within({ from, to, routing }: ToldRows, begin: number, end: number): ToldRows[] {
  const part = { from: Math.max(from, begin), to: Math.min(to, end), routing };
  return part.from < part.to ? [part] : [];
}

function toBlob({ sha256, rows, layers, top_k, dtype }: RoutingRecord, node_id: string, from: number, to: number, row: number): NodeBlob {
  return { name: routedExperts, dtype, shape: [rows, layers, top_k], node_id, span: [from, to], row, ref: sha256 };
}

/** For readers that do not replay experts: their bytes are many times those of the tokens. */
export function withoutExperts(trajectory: Trajectory): Trajectory {
  return { ...trajectory, blobs: trajectory.blobs.filter(({ name }) => name !== routedExperts) };
}
