/**
 * Session log -> canonical trajectory. Pure: no clock, no I/O, no randomness, so the same log gives the same
 * trajectory on every machine, in any order of its entries, also for the session of a process that was killed.
 */

import { createHash } from "node:crypto";
import type { z } from "zod";
import type { RewardComponent } from "../base/schema/reward-component.ts";
import { type LogLine, openedAs } from "../base/schema/session-log.ts";
import type { CallOutcome } from "../base/schema/trajectory.ts";
import { type CallRecord, type Trajectory, type TrajectoryStatus, trajectorySchemaVersion } from "../base/schema/trajectory.ts";
import { measureFidelity } from "./fidelity.ts";
import type { CallHistory } from "./log/call-history.ts";
import { type Conversations, layOut } from "./log/conversations.ts";
import { findEvidence, outcomeOf } from "./log/outcome.ts";
import { isOfOtherPolicy, knownBeforeHold, partsOf, policyAtStart, policyParts, weightSpansOf } from "./log/policy-of.ts";
import { readLog, type SessionHistory } from "./log/read-log.ts";
import { replayReport } from "./log/replay-report.ts";
import { whyUncounted } from "./log/uncounted.ts";
import { omittedOf } from "./omitted.ts";
import type { TrainedSession } from "./trained/rules.ts";
import { withinSideShare } from "./trained/side-share.ts";
import { judgedNodes, whyRecordedUntrained } from "./trained/why-untrained.ts";
import type { Edge } from "./tree/edge.ts";
import { findEdges } from "./tree/edges.ts";
import { findParents } from "./tree/parents.ts";
import { routingBlobs } from "./tree/routing-blobs.ts";
import { namesItsTokens, supportBlobs } from "./tree/support-blobs.ts";
import { type Exclusions, toNodes } from "./tree/to-nodes.ts";
import { buildTree, type TokenTree } from "./tree/token-tree.ts";

/**
 * What the log does not hold: the rollout around the session. Every field is optional. A missing one is taken from the log
 * (its spec, its last `rewarded`), or is null.
 */
export type TrajectoryFacts = {
  status?: z.infer<typeof TrajectoryStatus>;
  /** undefined: the log's last `rewarded`; null: nothing was measured. */
  reward?: number | null;
  reward_components?: RewardComponent[];
  task?: Partial<Trajectory["task"]>;
  group?: Partial<Trajectory["group"]>;
  harness?: Partial<Trajectory["harness"]>;
  rollout_id?: string | null;
  attempt?: number;
  stop_reason?: string | null;
  /** Whether its tokens may be trained. Default: true, also for `live`; `eval` is never trained. */
  in_loss?: boolean;
  /** Does its reward count in the group's baseline? Default: as `in_loss`. */
  in_baseline?: boolean;
  mask_reason?: string | null;
};

/**
 * Throws `store_error` where the log has no `opened` entry. Everything else that is missing is null on the record, and
 * what damaged lines cost is named in the fidelity report.
 */
export function reconstruct(entries: Iterable<LogLine>, facts: TrajectoryFacts = {}): Trajectory {
  return reconstruction(entries)(facts);
}

/** The same in two steps, for a log of which more is known later: the tree is built once, and each set of facts makes a trajectory of it. */
export function reconstruction(entries: Iterable<LogLine>): (facts?: TrajectoryFacts) => Trajectory {
  const session = readLog(entries);
  const { opened } = session;
  const calls = withinSideShare(session.calls, opened.spec);
  const places = layOut(calls);
  const outcomes = outcomesOf(calls, places);
  const edges = findEdges(calls, findParents(calls, places, outcomes), places);
  const tree = buildTree(calls, edges, places);
  const { alidade_version } = opened;
  const tool_runs = session.tool_history.runs();
  return (facts = {}) => {
    const head = toHead(session, facts);
    const exclusions = exclude(calls, places, outcomes, head);
    const { nodes, traces, idOf } = toNodes(tree, exclusions, places.pictures);
    const recorded = {
      ...head,
      calls: calls.map((call) => toCallRecord(call, { places, edges, outcomes, tree, idOf })),
      ...(tool_runs && { tool_runs }),
      messages: Object.fromEntries(places.messages.map((message, index) => [messageId(index), message])),
      tools: Object.fromEntries(session.tools),
      nodes,
      traces,
      blobs: [...routingBlobs(calls, tree, idOf), ...supportBlobs(calls, tree, idOf)],
    };
    const trajectory = { ...recorded, nodes: judgedNodes(recorded) };
    return {
      ...trajectory,
      fidelity: measureFidelity({
        histories: calls,
        trajectory,
        lost: session.lost,
        tool_servers: session.tool_history.hash(),
        alidade_version,
      }),
    };
  };
}

function outcomesOf(calls: CallHistory[], places: Conversations): Map<string, CallOutcome> {
  const evidence = findEvidence(calls, places);
  return new Map(calls.map((call) => [call.call_id, outcomeOf(call, evidence.get(call.call_id))]));
}

function exclude(
  calls: CallHistory[],
  places: Conversations,
  outcomes: Map<string, CallOutcome>,
  session: TrainedSession & Pick<Trajectory, "in_loss">,
): Exclusions {
  return new Map(
    calls.map((history) => {
      const { call_id, damage, begun, finished } = history;
      const judged = {
        damage,
        outcome: outcomes.get(call_id) as CallOutcome,
        replayed_from: finished?.replayed_from ?? null,
        other_policy: isOfOtherPolicy(history),
        request_class: begun.request_class,
      };
      const whyAt = (position: number) =>
        whyRecordedUntrained({ judged, history, hasPrompt: places.prompt.has(call_id), position }, session);
      const known = knownBeforeHold(history);
      const [early, late] = [known > 0 ? whyAt(0) : null, whyAt(known)];
      return [call_id, (position) => (position < known ? early : late)];
    }),
  );
}

/** Labels that the session's program gave its calls (`proxy/calls/given-place.ts`), each as the first call with it says. */
function labelsGiven(calls: CallHistory[]): Record<string, string> {
  const labels = new Map<string, string>();
  for (const { begun } of calls)
    for (const [name, value] of Object.entries(begun.labels)) if (name.startsWith("label-") && !labels.has(name)) labels.set(name, value);
  return Object.fromEntries([...labels].map(([name, value]) => [name.slice("label-".length), value]));
}

type TrajectoryHead = Omit<Trajectory, "calls" | "tool_runs" | "messages" | "tools" | "nodes" | "traces" | "blobs" | "fidelity">;

function toHead({ opened, calls, rewarded, sealed_reason, resumed, ...replayed }: SessionHistory, facts: TrajectoryFacts): TrajectoryHead {
  const { session_id } = opened;
  const taken = resumed.findLast(({ place }) => place);
  const { spec } = taken ? openedAs(opened, taken) : opened;
  const attempt = facts.attempt ?? resumed.at(-1)?.attempt ?? spec.attempt;
  const in_loss = facts.in_loss ?? true;
  // The rollout that was parked may have an attempt of this number.
  const takenUp = taken ? ` ${taken.place?.rollout_id}` : "";
  return {
    schema_version: trajectorySchemaVersion,
    trajectory_id: `traj${createHash("sha256").update(`${session_id} ${attempt}${takenUp}`).digest("hex").slice(0, 20)}`,
    session_id,
    rollout_id: facts.rollout_id === undefined ? spec.rollout_id : facts.rollout_id,
    attempt,
    member: spec.member,
    lead_agents: ["main"],
    purpose: spec.purpose,
    sandboxed: spec.sandboxed,
    train_classes: spec.train_classes,
    status: facts.status ?? "recorded",
    task: { id: spec.task_id, hash: null, data_source: null, ...given(facts.task) },
    group: { id: spec.group_id, size: null, sample_index: spec.sample_index, ...given(facts.group) },
    harness: { name: spec.harness, version: null, config_hash: null, ...given(facts.harness) },
    labels: { ...labelsGiven(calls), ...spec.labels },
    forked_from: spec.forked_from,
    replay: replayReport(replayed),
    resumed: resumed.map(({ attempt, calls, sampled_tokens }) => ({ attempt, calls, sampled_tokens })),
    stop_reason: facts.stop_reason === undefined ? sealed_reason : facts.stop_reason,
    in_loss,
    in_baseline: facts.in_baseline ?? in_loss,
    mask_reason: facts.mask_reason ?? null,
    reward: facts.reward === undefined ? (rewarded?.reward ?? null) : facts.reward,
    reward_components: facts.reward_components ?? [
      ...Object.entries(rewarded?.components ?? {}).map(([name, value]) => rolloutComponent(name, value)),
      ...(rewarded?.scoped_components ?? []),
    ],
  };
}

/** An undefined field means "not given" and must not erase what the log says. */
function given<T extends object>(fields: T | undefined): Partial<T> {
  return Object.fromEntries(Object.entries(fields ?? {}).filter(([, value]) => value !== undefined)) as Partial<T>;
}

function rolloutComponent(name: string, value: number | null): RewardComponent {
  return { scope: "rollout", target: null, name, value, weight: null };
}

type CallContext = {
  places: Conversations;
  edges: Map<string, Edge>;
  outcomes: Map<string, CallOutcome>;
  tree: TokenTree;
  idOf: Map<TokenTree["root"], string>;
};

function toCallRecord(call: CallHistory, { places, edges, outcomes, tree, idOf }: CallContext): CallRecord {
  const { begun, finished, call_id } = call;
  const edge = edges.get(call_id) as Edge;
  const promptEnd = tree.promptEnd.get(call_id);
  const input = places.input.get(call_id);
  const output = places.output.get(call_id);
  const omitted = omittedOf(begun);
  const experts = call.tries.at(-1)?.experts;
  return {
    call_id,
    ordinal: begun.ordinal,
    parent_call_id: edge.parent?.call_id ?? null,
    prompt_node_id: (promptEnd && idOf.get(promptEnd)) ?? null,
    prompt_length: places.prompt.get(call_id)?.depth ?? null,
    sampled_length: finished?.sampled_ids?.length ?? null,
    ...(finished?.media && { media: finished.media }),
    uncounted: whyUncounted(call),
    match: edge.match,
    cause: edge.cause,
    difference: edge.difference,
    outcome: outcomes.get(call_id) as CallOutcome,
    dialect: begun.dialect,
    agent: begun.agent,
    request_class: begun.request_class,
    engine: finished?.engine ?? call.tries.at(-1)?.engine ?? null,
    engine_name: call.tries.at(-1)?.engine_name ?? null,
    fingerprints: call.tries.at(-1)?.fingerprints ?? null,
    ...(experts !== undefined && { experts }),
    ...routingOf(finished),
    ...supportOf(finished),
    engine_model: finished?.engine_model ?? null,
    tries: call.tries.map(({ try: number, engine, status, error, may_have_sampled }) => ({
      try: number,
      engine,
      status,
      error,
      ...(may_have_sampled !== undefined && { may_have_sampled }),
    })),
    finish_reason: finished?.finish_reason ?? null,
    stop: finished?.stop ?? null,
    requested_sampling: begun.requested_sampling,
    sampling: begun.effective_sampling,
    ...(begun.withheld && { withheld: begun.withheld }),
    ...(omitted && { omitted }),
    logprob_semantics: finished?.logprob_semantics ?? { kind: null, grammar: false },
    missing: finished === null ? (call.damage ?? neverFinished) : finished.missing,
    damage: call.damage,
    other_policy: isOfOtherPolicy(call),
    policy: {
      start: policyAtStart(call),
      end: finished?.policy ?? null,
      spans: weightSpansOf(call) ?? [],
      ...(partsOf(call).length > 0 && { parts: policyParts(call) }),
      check: call.tries.at(-1)?.policy_check ?? null,
    },
    input: input === undefined ? [] : places.message_trie.items(input).map(messageId),
    output: output === undefined ? null : messageId(output),
    tools_hash: begun.tools_hash,
    restored: begun.restored,
    role_mapping: call.tries.at(-1)?.role_mapping ?? begun.role_mapping,
    labels: begun.labels,
    usage: finished?.usage ?? null,
    continuity: finished?.continuity ?? null,
    replayed_from: finished?.replayed_from ?? null,
    error: finished?.error ?? null,
    times: {
      begun: begun.time,
      first_token: call.tries.at(-1)?.first_token ?? null,
      finished: finished?.time ?? null,
      answered: call.answered?.time ?? null,
    },
    ...(finished?.pauses && { pauses: finished.pauses }),
  };
}

function routingOf(finished: CallHistory["finished"]): Pick<CallRecord, "routing"> {
  if (finished?.routing) return { routing: "recorded" };
  return finished?.routing_missing ? { routing: finished.routing_missing } : {};
}

function supportOf(finished: CallHistory["finished"]): Pick<CallRecord, "support"> {
  if (finished?.support) return { support: namesItsTokens(finished) ? "recorded" : "misfit" };
  return finished?.support_missing ? { support: finished.support_missing } : {};
}

const neverFinished = "lost_in_flight: the process ended before the call did, and what the engine sampled until then is unknown";

/** Messages are numbered in order of first appearance. */
const messageId = (index: number): string => `m${index}`;
