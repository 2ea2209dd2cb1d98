/** Figures of a recorded run by policy step, folded as the service folds its ledger's rows (rollouts/figures). */

import { sumCounts } from "../../../base/statistics/sum-counts.ts";
import { attemptFigures, newestOf, StepTallies, type TalliedRow } from "../../../service/figures/index.ts";
import type { AttemptFigures } from "../../../service/ledger/index.ts";
import { sampledBy } from "../../../service/nodes/index.ts";
import { asOne, type Entry, membersOf } from "../../../view/index.ts";
import { say } from "../command-line.ts";
import { entriesOf } from "./entries-of.ts";
import { trajectoriesOf } from "./trajectories-of.ts";

/** `steps`: the newest one that sampled it (null: unknown); none where nothing was sampled. */
type SessionFacts = { figures: AttemptFigures; steps: (number | null)[]; group_size: number | null };

/** `isMeant`: the rollouts that are counted, each by its last attempt. What cannot be read is told. */
export async function runFigures(folders: readonly string[], isMeant: (rollout: Entry) => boolean): Promise<StepTallies> {
  const tallies = new StepTallies(Number.POSITIVE_INFINITY);
  for (const folder of folders) await addRun(tallies, folder, isMeant);
  return tallies;
}

async function addRun(tallies: StepTallies, folder: string, isMeant: (rollout: Entry) => boolean): Promise<void> {
  const rollouts = membersOf(await entriesOf(folder)).map((members) => ({ members, rollout: asOne(members) }));
  const meant = rollouts.filter(({ rollout }) => isMeant(rollout));
  const facts = await factsOf(folder, new Set(meant.flatMap(({ members }) => members.map(({ session_id }) => session_id))));
  for (const group of Map.groupBy(meant, ({ rollout }) => groupOf(rollout)).values()) {
    const over = group.filter(({ rollout }) => isOver(rollout));
    const rows = over.map(({ members, rollout }) => toRow(rollout, members, facts));
    for (const row of rows) tallies.addRow(row);
    if (isWhole(group, over, facts)) tallies.addGroup(rows);
  }
}

type Rollout = { members: Entry[]; rollout: Entry };

/** A run that was interrupted, or a part of it, has fewer rollouts of a group than the group has. */
function isWhole(group: readonly Rollout[], over: readonly Rollout[], facts: ReadonlyMap<string, SessionFacts>): boolean {
  const sizes = group.flatMap(({ members }) => members).map(({ session_id }) => facts.get(session_id ?? "")?.group_size ?? 0);
  return over[0]?.rollout.group_id != null && over.length === group.length && over.length >= Math.max(...sizes);
}

/** One pass over the tokens: of each wanted session its figures. */
async function factsOf(folder: string, wanted: ReadonlySet<string | null>): Promise<Map<string, SessionFacts>> {
  const facts = new Map<string, SessionFacts>();
  for await (const trajectory of trajectoriesOf(folder, (message) => say(`alidade: ${message}`))) {
    const { session_id, calls, fidelity } = trajectory;
    if (!wanted.has(session_id)) continue;
    const steps = fidelity.sampled_tokens === 0 ? [] : [sampledBy(calls).newest_step];
    facts.set(session_id, { figures: attemptFigures(trajectory, Number.POSITIVE_INFINITY), steps, group_size: trajectory.group.size });
  }
  return facts;
}

const isOver = ({ state }: Entry): boolean => state === "done" || state === "recorded";
const groupOf = ({ task_id, group_id }: Entry): string => JSON.stringify([task_id, group_id]);

/** As a service's row of it: one that was cancelled has no figures. A run has no step in force beside what sampled, so nothing in it has a lag. */
function toRow(rollout: Entry, members: readonly Entry[], facts: ReadonlyMap<string, SessionFacts>): TalliedRow {
  const { reward, mask_reason, sampled_tokens, trainable_tokens } = rollout;
  const known = members.flatMap(({ session_id }) => facts.get(session_id ?? "") ?? []);
  const state = reward !== null ? "completed" : rollout.end === "cancelled" ? "cancelled" : "failed";
  return {
    state,
    reward,
    mask_reason,
    sampled_tokens: sampled_tokens ?? 0,
    trainable_tokens: trainable_tokens ?? 0,
    stale: null,
    policy_step: null,
    newest_step: newestOf(known.flatMap(({ steps }) => steps)),
    policies: rollout.policies,
    figures: state === "cancelled" ? null : known.map(({ figures }) => figures).reduce<AttemptFigures | null>(together, null),
  };
}

function together(sum: AttemptFigures | null, one: AttemptFigures): AttemptFigures {
  if (sum === null) return one;
  return {
    data_source: sum.data_source ?? one.data_source,
    is_cut: sum.is_cut || one.is_cut,
    edges: sumCounts([sum.edges, one.edges]),
    row_tokens: sum.row_tokens + one.row_tokens,
    tree_tokens: sum.tree_tokens + one.tree_tokens,
    prompt_tokens: sum.prompt_tokens + one.prompt_tokens,
    cached_tokens: sum.cached_tokens + one.cached_tokens,
    excluded: sum.excluded && one.excluded && sumCounts([sum.excluded, one.excluded]),
    causes: sum.causes && one.causes && sumCounts([sum.causes, one.causes]),
    engine_spans: sum.engine_spans && one.engine_spans && [...sum.engine_spans, ...one.engine_spans],
  };
}
