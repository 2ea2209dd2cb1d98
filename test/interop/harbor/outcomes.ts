/** What Harbor and we give the same task folders and the same agents: measured, or as it was measured last. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { Limiter } from "../../../base/host/limiter.ts";
import { currentOwner } from "../../../base/host/owner.ts";
import { Task } from "../../../base/schema/task.ts";
import { readRewards } from "../../../graders/harbor/reward-files.ts";
import { chosenReward } from "../../../graders/harbor/reward-rule.ts";
import { whyOutside } from "../../../graders/rules/reward-range.ts";
import { checkGrading } from "../../../graders/shared/check-grading.ts";
import { withGrading } from "../../../graders/shared/place-to-grade.ts";
import { taskOfStep } from "../../../graders/steps.ts";
import { runGoldScript } from "../../../graders/work/gold.ts";
import { ensureBaseImage } from "../../../sandboxes/docker/images/made/base-image.ts";
import type { Sandbox } from "../../../sandboxes/sandbox.ts";
import { loadTasks } from "../../../tasks/load-tasks.ts";
import { gradedAfter } from "../../fakes/graded-after.ts";
import { harborFolder } from "../../fakes/harbor-tasks.ts";
import { type HarborTrial, runHarbor } from "./harbor.ts";
import { harborCases, harborProbes } from "./probes.ts";

/** Each number by its name; null: no reward. */
type Rewards = Record<string, number> | null;

/** `fresh`: left out where only the reward's files are asked about, which are read the same way. */
export type HarborOutcome = { harbor: Rewards; exception: string | null; fresh?: Rewards; shared: Rewards };

export const outcomesFile = join(import.meta.dirname, "outcomes.json");

export async function recordedHarbor(): Promise<Record<string, HarborOutcome>> {
  return JSON.parse(await readFile(outcomesFile, "utf8"));
}

/** The three tasks, once solved and once with an agent that does nothing, and all probes. By their names, sorted. */
export async function measuredHarbor(signal: AbortSignal): Promise<Record<string, HarborOutcome>> {
  await ensureBaseImage({ signal });
  const cases = harborCases();
  const folder = await harborFolder(cases);
  const three = await harborFolder(Object.fromEntries(Object.entries(cases).slice(0, threeTasks)));
  const [solved, idle, ours] = await Promise.all([
    runHarbor({ tasks: folder, agent: "oracle", atOnce: 3, quickStop: true }, signal),
    runHarbor({ tasks: three, agent: "nop", quickStop: true }, signal),
    Promise.all((await loadTasks(folder, { signal })).map((task) => gradedHere(task, signal))).then((all) => new Map(all.flat())),
  ]);
  const trials = [...solved.map((one) => [one.task, one] as const), ...idle.map((one) => [`${one.task}, no change`, one] as const)];
  return Object.fromEntries(trials.sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, trial]) => [name, outcomeOf(name, trial, ours)]));
}

const threeTasks = 3;

function outcomeOf(name: string, trial: HarborTrial, ours: Map<string, Rewards>): HarborOutcome {
  const { rewards: harbor, exception } = trial;
  const [fresh, shared] = [ours.get(`${name} fresh`), ours.get(`${name} shared`)];
  if (shared === undefined) return { harbor, exception, shared: readHere(trial) };
  return { harbor, exception, ...(fresh !== undefined && { fresh: fresh as Rewards }), shared };
}

/** One that declares no range. */
const plainTask = Task.parse({ task_id: "plain", instruction: "-", grader: { kind: "harbor" } });

/** What we read out of the files that Harbor's verifier left. */
function readHere({ logs }: HarborTrial): Rewards {
  try {
    const { values } = readRewards(logs);
    return whyOutside(plainTask, chosenReward(values, null).reward) === null ? Object.fromEntries(values) : null;
  } catch {
    return null;
  }
}

type Graded = [name: string, rewards: Rewards];

/** As many as leave Harbor its share of the machine. */
const limiter = new Limiter(2);

/** In both places: a probe after its deed, one of the three tasks also after none. */
async function gradedHere(task: Task, signal: AbortSignal): Promise<Graded[]> {
  const [, name = ""] = task.task_id.split("__");
  const probe = harborProbes.find((one) => one.name === name);
  if (probe?.asks === "reward files") return [];
  const places = ["fresh", "shared"] as const;
  const ends = probe ? [true] : [true, false];
  return Promise.all(
    places
      .flatMap((place) => ends.map((solves) => [place, solves] as const))
      .map(async ([place, solves]): Promise<Graded> => {
        const key = `${solves ? name : `${name}, no change`} ${place}`;
        const graded = withGrading(task, place);
        checkGrading(graded);
        return [key, await limiter.run(signal, () => rewardsFor(graded, solves, signal))];
      }),
  );
}

async function rewardsFor(task: Task, solves: boolean, signal: AbortSignal): Promise<Rewards> {
  const owner = { run_id: "harbor-live", owner: await currentOwner() };
  const deed = async (sandbox: Sandbox, step: number): Promise<void> => {
    const own = task.steps ? taskOfStep(task, step) : task;
    if (solves && own.gold_script) await runGoldScript(own, own.gold_script, sandbox, { signal });
  };
  const { reward, components } = await gradedAfter(task, deed, owner, signal);
  if (reward === null) return null;
  const named = Object.entries(components).flatMap(([name, { value }]) =>
    name.startsWith("step/") || value === null ? [] : [[name, value]],
  );
  return named.length === 0 ? { reward } : Object.fromEntries(named);
}
