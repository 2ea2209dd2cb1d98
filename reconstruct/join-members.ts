/**
 * The sessions of one rollout (the agents of a team) as one trajectory, so that whatever reads a rollout has all of it:
 * the rows of all members, one reward, one entry in the group's baseline. A member's agent `main` gets the member's name
 * and its sub-agents `member/agent`; ids of nodes, messages and traces get the same beginning, ids of calls stay.
 */
import { hash } from "node:crypto";
import { hashOf } from "../base/schema/ids.ts";
import type { RewardComponent } from "../base/schema/reward-component.ts";
import { isNeverTrained } from "../base/schema/session-spec.ts";
import type { CallRecord, Fidelity, Trajectory } from "../base/schema/trajectory.ts";
import { sumCounts } from "../base/statistics/sum-counts.ts";
import { countFidelity, rowInflation } from "./fidelity.ts";
import { addOmitted } from "./omitted.ts";

/**
 * `members`: those of one attempt, at least one, in any order. The reward is the one that was given, to whichever of
 * them: where two were given different ones the rollout's is unknown and null, out of loss and baseline
 * (`members_disagree`). A member that is evaluated keeps the whole rollout out of the loss (`eval_member`).
 */
export function joinMembers(members: readonly Trajectory[]): Trajectory {
  const ordered = members.toSorted((a, b) => beginOf(a) - beginOf(b) || (nameOf(a) < nameOf(b) ? -1 : 1)).map(named);
  const [first] = ordered as [Trajectory];
  if (ordered.length === 1) return first;
  const nodes = ordered.flatMap((one) => one.nodes);
  const joined = {
    ...first,
    ...standing(ordered),
    trajectory_id: `traj${hash("sha256", ordered.map((one) => one.trajectory_id).join(" ")).slice(0, 20)}`,
    sandboxed: ordered.every((one) => one.sandboxed),
    train_classes: first.train_classes.filter((kind) => ordered.every((one) => one.train_classes.includes(kind))),
    harness: {
      name: shared(ordered.map((one) => one.harness.name)),
      version: shared(ordered.map((one) => one.harness.version)),
      config_hash: shared(ordered.map((one) => one.harness.config_hash)),
    },
    lead_agents: ordered.flatMap((one) => one.lead_agents),
    reward_components: distinct(ordered.flatMap((one) => one.reward_components)),
    calls: ordered
      .flatMap((one) => one.calls)
      .toSorted((a, b) => a.times.begun - b.times.begun)
      .map((call, ordinal) => ({ ...call, ordinal })),
    ...(ordered.some((one) => one.tool_runs) && { tool_runs: ordered.flatMap((one) => one.tool_runs ?? []) }),
    messages: Object.assign({}, ...ordered.map((one) => one.messages)) as Trajectory["messages"],
    tools: Object.assign({}, ...ordered.map((one) => one.tools)) as Trajectory["tools"],
    nodes,
    traces: ordered.flatMap((one) => one.traces),
    blobs: ordered.flatMap((one) => one.blobs),
  };
  const reports = ordered.map((one) => one.fidelity);
  const damaged = reports.flatMap((report) => report.damaged);
  return {
    ...joined,
    fidelity: {
      ...joinFidelity(reports),
      ...countFidelity({ ...joined, fidelity: { damaged } }),
      damaged,
      row_inflation: rowInflation(nodes),
    },
  };
}

/** A session's trajectory under its member's name; as it is where it has none. */
function named(trajectory: Trajectory): Trajectory {
  const { member } = trajectory;
  if (member === null) return trajectory;
  const agent = (name: string): string => (name === "main" ? member : `${member}/${name}`);
  const id = (name: string): string => `${member}/${name}`;
  const idOrNull = (name: string | null): string | null => (name === null ? null : id(name));
  return {
    ...trajectory,
    member: null,
    lead_agents: trajectory.lead_agents.map(agent),
    reward_components: trajectory.reward_components.map((component) => renamedComponent(component, agent, id)),
    calls: trajectory.calls.map(
      (call): CallRecord => ({
        ...call,
        agent: agent(call.agent),
        prompt_node_id: idOrNull(call.prompt_node_id),
        input: call.input.map(id),
        output: idOrNull(call.output),
      }),
    ),
    messages: Object.fromEntries(Object.entries(trajectory.messages).map(([name, message]) => [id(name), message])),
    nodes: trajectory.nodes.map((node) => ({ ...node, node_id: id(node.node_id), parent_id: idOrNull(node.parent_id) })),
    traces: trajectory.traces.map((trace) => ({
      trace_id: id(trace.trace_id),
      leaf_node_id: id(trace.leaf_node_id),
      agent: agent(trace.agent),
    })),
    blobs: trajectory.blobs.map((blob) => ({ ...blob, node_id: id(blob.node_id) })),
  };
}

function renamedComponent(component: RewardComponent, agent: (name: string) => string, id: (name: string) => string): RewardComponent {
  const { scope, target } = component;
  if (target === null) return component;
  if (scope === "agent") return { ...component, target: agent(target) };
  return scope === "trace" ? { ...component, target: id(target) } : component;
}

type MemberStanding = Pick<Trajectory, "purpose" | "status" | "stop_reason" | "in_loss" | "in_baseline" | "mask_reason" | "reward">;

/** The worst first: a rollout is over as its worst member is. */
const statuses: readonly Trajectory["status"][] = ["cancelled", "failed", "cut", "graded", "recorded"];

function standing(members: readonly Trajectory[]): MemberStanding {
  const given = new Set(members.map((one) => one.reward).filter((reward) => reward !== null));
  const [reward = null] = given;
  const evaluated = members.filter((one) => isNeverTrained(one.purpose)).length;
  const worst = members.toSorted((a, b) => statuses.indexOf(a.status) - statuses.indexOf(b.status))[0] as Trajectory;
  const mask = given.size > 1 ? "members_disagree" : evaluated > 0 && evaluated < members.length ? "eval_member" : null;
  return {
    purpose: evaluated > 0 ? "eval" : worst.purpose,
    status: worst.status,
    stop_reason: worst.stop_reason,
    in_loss: mask === null && members.every((one) => one.in_loss),
    in_baseline: given.size < 2 && members.every((one) => one.in_baseline),
    mask_reason: mask ?? members.find((one) => one.mask_reason !== null)?.mask_reason ?? null,
    reward: given.size > 1 ? null : reward,
  };
}

type OfTokens = keyof ReturnType<typeof countFidelity> | "damaged" | "row_inflation";

function joinFidelity(reports: readonly Fidelity[]): Omit<Fidelity, OfTokens> {
  const sum = (count: (report: Fidelity) => number): number => reports.reduce((total, report) => total + count(report), 0);
  const counts = (of: (report: Fidelity) => Record<string, number>): Record<string, number> => sumCounts(reports.map(of));
  return {
    calls: sum((report) => report.calls),
    matches: counts((report) => report.matches),
    causes: counts((report) => report.causes),
    outcomes: counts((report) => report.outcomes),
    omitted: addOmitted(reports.map((report) => report.omitted)),
    continuity: counts((report) => report.continuity),
    resampled: sum((report) => report.resampled),
    policy_versions: [...new Set(reports.flatMap((report) => report.policy_versions))].sort(),
    policy_checks: counts((report) => report.policy_checks),
    fingerprints: joinFingerprints(reports.map((report) => report.fingerprints)),
  };
}

/** Equal ones stay; of others what they are together. */
function joinFingerprints(all: readonly Record<string, string>[]): Record<string, string> {
  const names = new Set(all.flatMap((each) => Object.keys(each)));
  return Object.fromEntries(
    [...names].map((name) => {
      const values = all.map((each) => each[name] ?? "");
      return [name, shared(values) ?? hashOf(values)];
    }),
  );
}

function shared<T>(values: readonly T[]): T | null {
  return new Set(values).size === 1 ? (values[0] ?? null) : null;
}

/** Each component of the rollout once, also where several members were given it. */
function distinct(components: readonly RewardComponent[]): RewardComponent[] {
  return [...new Map(components.map((one) => [JSON.stringify(one), one])).values()];
}

function beginOf({ calls }: Trajectory): number {
  return calls[0]?.times.begun ?? Number.POSITIVE_INFINITY;
}

const nameOf = ({ member }: Trajectory): string => member ?? "";
