/** Which rollouts of a run a command line means: those that are named, of those that pass its filters. */
import { AlidadeError } from "../../../base/errors.ts";
import type { RolloutRecord } from "../../../base/schema/rollout.ts";
import { toRollouts } from "../../../view/index.ts";
import { entriesOf } from "./entries-of.ts";
import { type FilterFlags, isMeant } from "./filters.ts";

/** Throws `not_found` for a name that no rollout has, and where none is left. */
export async function meantRollouts(path: string, names: string[], flags: FilterFlags): Promise<(record: RolloutRecord) => boolean> {
  const rollouts = toRollouts(await entriesOf(path));
  const unknown = names.find((name) => !rollouts.some((one) => namesOf(one).includes(name)));
  if (unknown !== undefined) throw new AlidadeError("not_found", `${path} holds no rollout "${unknown}"`, { param: "rollouts" });
  const meant = rollouts.filter((one) => isMeant(flags, one) && (names.length === 0 || namesOf(one).some((name) => names.includes(name))));
  const ids = new Set(meant.map(({ rollout_id }) => rollout_id));
  ids.delete(null);
  if (ids.size === 0)
    throw new AlidadeError("not_found", `no rollout of ${path} is meant: \`alidade ls rollouts --run ${path}\` lists them`);
  return ({ rollout_id }) => ids.has(rollout_id);
}

function namesOf({
  rollout_id,
  task_id,
  sample_index,
}: {
  rollout_id: string | null;
  task_id: string | null;
  sample_index: number | null;
}) {
  return [rollout_id ?? "", `${task_id}/${sample_index}`];
}
