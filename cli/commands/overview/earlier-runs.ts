/** Counts how often tasks were passed in earlier runs, to choose tasks by `pass_rate`. */
import { AlidadeError, messageOf } from "../../../base/errors.ts";
import { isSetId } from "../../../base/schema/ids.ts";
import type { EarlierRuns, TaskChoice } from "../../../tasks/sets/index.ts";
import { type PassCount, type PassCounts, sumOfCounts } from "../../../tasks/sets/index.ts";
import { runFolderOf } from "../records/run-folder-of.ts";

/** Reads a set of the service that makes the run. */
export type CountsOfSet = (set: string, pass: number) => Promise<PassCounts>;

/** Returns null if the choice asks for no pass rate. Throws `config_invalid` with the field. `ofSet` null: no service makes the run. */
export async function earlierRuns(
  choice: TaskChoice,
  note: (text: string) => void,
  ofSet: CountsOfSet | null = null,
): Promise<EarlierRuns | null> {
  const { pass_rate, of = [], pass, with_unmeasured } = choice;
  if (pass_rate === undefined) {
    const [alone] = Object.entries({ of: choice.of, pass, with_unmeasured }).filter(([, value]) => value !== undefined);
    if (alone === undefined) return null;
    throw refused(
      alone[0],
      `${alone[0]} is ${JSON.stringify(alone[1])} without pass_rate, which it belongs to: give a range by --pass-rate, such as 0.1..0.9`,
    );
  }
  if (of.length === 0) throw refused("of", `pass_rate is ${pass_rate} and of is missing: name an earlier run by --of`);
  const { passReward } = await import("../../../service/figures/index.ts");
  const counts = await Promise.all(of.map((run) => countsOf(run, pass ?? passReward, ofSet)));
  return { counts: sumOfCounts(counts), note };
}

async function countsOf(run: string, pass: number, ofSet: CountsOfSet | null): Promise<PassCounts> {
  try {
    if (ofSet !== null && isSetId(run)) return await ofSet(run, pass);
    return await countsIn(await runFolderOf(run), pass);
  } catch (error) {
    if (!(error instanceof AlidadeError)) throw error;
    const what = isSetId(run) && ofSet === null ? "the id of a set goes with --service" : messageOf(error);
    throw refused(
      "of",
      `of is ${JSON.stringify(run)}: ${what}; ${ofSet === null ? "name the folder of a run" : "name the folder of a run, or the id of a set of this service"}`,
      error,
    );
  }
}

/** Counts as `stats` does: the last attempt of each rollout, without rollouts that have no reward. */
async function countsIn(folder: string, pass: number): Promise<PassCounts> {
  const [{ toRollouts }, { entriesOf }] = await Promise.all([import("../../../view/index.ts"), import("./entries-of.ts")]);
  const counts = new Map<string, PassCount>();
  for (const { task_id, reward } of toRollouts(await entriesOf(folder))) {
    if (task_id === null || reward === null) continue;
    const { measured, passed } = counts.get(task_id) ?? { measured: 0, passed: 0 };
    counts.set(task_id, { measured: measured + 1, passed: passed + (reward >= pass ? 1 : 0) });
  }
  return counts;
}

function refused(param: string, message: string, cause?: unknown): AlidadeError {
  return new AlidadeError("config_invalid", message, { param, cause });
}
