/** Figures of sets and nodes for a monitor, all of them from the ledger. */

import { gauge, type MetricFamily, type MetricSample } from "../base/wire/prometheus-text.ts";
import { passReward, type ResultTally, type StepFigures, stepFigures } from "./figures/index.ts";
import type { EnginePlaces, NodeState, SetState } from "./ledger/index.ts";

/** `counted`: results that the tally and the steps are made of. */
export type SetFigures = { state: SetState; counted: number; tally: ResultTally; steps: readonly StepFigures[] };

type SetMetric = Omit<MetricFamily, "samples"> & { of(figures: SetFigures): MetricSample[] };

export function ledgerMetrics(sets: readonly SetFigures[], total: number, nodes: readonly NodeState[]): MetricFamily[] {
  return [
    gauge("alidade_sets", "Sets of the ledger.", total),
    gauge(
      "alidade_sets_left_out",
      "Sets without figures here: those without open rollouts come last, and the oldest of them.",
      total - sets.length,
    ),
    ...setMetrics.map(({ of, ...family }) => ({ ...family, samples: sets.flatMap((figures) => named(figures, of(figures))) })),
    ...stepFigures.map((figure) => stepMetric(figure, sets)),
    ...nodeMetrics.map(({ of, ...family }) => ({
      ...family,
      samples: nodes.map((node) => ({ labels: { node: node.name }, value: of(node) })),
    })),
    ...placeMetrics.map(({ of, ...family }) => ({
      ...family,
      samples: nodes.flatMap(({ name, engines }) =>
        engines.map((engine) => ({ labels: { engine: engine.name, node: name }, value: of(engine) })),
      ),
    })),
  ];
}

/** One line a step that is shown; none where the figure, or the step, is unknown. */
function stepMetric({ name, what }: (typeof stepFigures)[number], sets: readonly SetFigures[]): MetricFamily {
  const samplesOf = ({ steps }: SetFigures): MetricSample[] =>
    steps.flatMap(({ policy_step: step, figures }) =>
      step === null ? [] : [{ labels: { step: String(step) }, value: figures[name].value }],
    );
  const samples = sets.flatMap((figures) => named(figures, samplesOf(figures)));
  return { ...gauge(`alidade_step_${name}`, `${what}, at a set's latest policy steps.`, 0), samples };
}

/** The key is the trainer's word and is cut where it is long; the id keeps two sets apart. `namespace` itself is a label that Kubernetes gives. */
function named({ state: { key, set_id, namespace } }: SetFigures, samples: MetricSample[]): MetricSample[] {
  const set = { set: key, set_id, ...(namespace !== "" && { set_namespace: namespace }) };
  return samples.map(({ labels, value }) => ({ labels: { ...set, ...labels }, value }));
}

const each = (label: string, values: Record<string, number | null>): MetricSample[] =>
  Object.entries(values).map(([name, value]) => ({ labels: { [label]: name }, value }));

const one = (value: number | null): MetricSample[] => [{ labels: {}, value }];

/** Null where there is nothing to divide by. */
const ratio = (part: number, whole: number): MetricSample[] => one(whole === 0 ? null : part / whole);

const seconds = (milliseconds: number | null): number | null => (milliseconds === null ? null : milliseconds / 1000);

const setMetrics: readonly SetMetric[] = [
  {
    name: "alidade_rollouts",
    type: "gauge",
    help: "Rollouts of a set by their state.",
    of: ({ state }) => each("state", state.rollouts),
  },
  {
    name: "alidade_expired_rollouts",
    type: "gauge",
    help: "Rollouts of a set whose results were removed; figures made of rewards or tokens have those that were read before.",
    of: ({ state }) => one(state.expired?.rollouts ?? 0),
  },
  {
    name: "alidade_failures_total",
    type: "counter",
    help: "Results of a set with an error, by its code; `cancelled` is one of them.",
    of: ({ state }) => each("code", state.failures),
  },
  {
    name: "alidade_groups",
    type: "gauge",
    help: "Groups of a set by their state. whole: all their rollouts are over.",
    of: ({ state }) => each("state", state.groups),
  },
  {
    name: "alidade_oldest_rollout_age_seconds",
    type: "gauge",
    help: "How long the oldest rollout has been in this state; no line where there is none.",
    of: ({ state: { oldest } }) => each("state", { queued: seconds(oldest.queued_ms), running: seconds(oldest.running_ms) }),
  },
  {
    name: "alidade_results_counted",
    type: "gauge",
    help: "Results of a set that its figures of rewards, groups, tokens and steps are made of; fewer than there are while more are read.",
    of: ({ counted }) => one(counted),
  },
  {
    name: "alidade_rewards_total",
    type: "counter",
    help: "Results of a set with a reward.",
    of: ({ tally }) => one(tally.measured),
  },
  {
    name: "alidade_reward_mean",
    type: "gauge",
    help: "Mean of all rewards of a set; no line where there is none.",
    of: ({ tally }) => ratio(tally.reward_sum, tally.measured),
  },
  {
    name: "alidade_pass_ratio",
    type: "gauge",
    help: `Share of the rewards of a set that are ${passReward} or more.`,
    of: ({ tally }) => ratio(tally.passed, tally.measured),
  },
  {
    name: "alidade_null_reward_ratio",
    type: "gauge",
    help: "Share of the results of a set that have no reward, cancelled ones aside.",
    of: ({ tally }) => ratio(tally.unmeasured, tally.unmeasured + tally.measured),
  },
  {
    name: "alidade_compared_groups_total",
    type: "counter",
    help: "Whole groups of a set with two or more rewards that count.",
    of: ({ tally }) => one(tally.compared_groups),
  },
  {
    name: "alidade_groups_without_variance_total",
    type: "counter",
    help: "Compared groups of a set whose rewards are all equal: nothing is learned from them.",
    of: ({ tally }) => one(tally.equal_groups),
  },
  {
    name: "alidade_sampled_tokens_total",
    type: "counter",
    help: "Tokens that the policy sampled in the rollouts of a set that are over.",
    of: ({ tally }) => one(tally.sampled_tokens),
  },
  {
    name: "alidade_trainable_tokens_total",
    type: "counter",
    help: "Those of the sampled tokens that can be trained.",
    of: ({ tally }) => one(tally.trainable_tokens),
  },
];

const nodeMetrics: readonly (Omit<MetricFamily, "samples"> & { of(node: NodeState): number })[] = [
  { name: "alidade_node_slots", type: "gauge", help: "Rollouts that a node makes at once.", of: ({ slots }) => slots },
  { name: "alidade_node_rollouts", type: "gauge", help: "Rollouts that a node has.", of: ({ running }) => running },
  {
    name: "alidade_node_lease_seconds",
    type: "gauge",
    help: "Time until a node's lease ends; below 0 it was missed.",
    of: ({ lease_ms }) => lease_ms / 1000,
  },
  { name: "alidade_node_draining", type: "gauge", help: "1: the node claims no more.", of: ({ is_draining }) => Number(is_draining) },
];

/** Places at engines whose calls at once are limited, as each node said with its last beat. */
const placeMetrics: readonly (Omit<MetricFamily, "samples"> & { of(engine: EnginePlaces): number })[] = [
  { name: "alidade_engine_places", type: "gauge", help: "Calls that an engine is given at once, by all nodes.", of: ({ limit }) => limit },
  {
    name: "alidade_engine_places_granted",
    type: "gauge",
    help: "Calls that a node may have at an engine.",
    of: ({ granted }) => granted,
  },
  { name: "alidade_engine_places_used", type: "gauge", help: "Calls that a node has at an engine.", of: ({ used }) => used },
  {
    name: "alidade_engine_places_waiting",
    type: "gauge",
    help: "Calls of a node that wait for a place at an engine.",
    of: ({ waiting }) => waiting,
  },
];
