/**
 * How much may go on at once on this machine. Each sandbox has its limits, and nothing bounds them together: where they
 * add up to more than there is, one hostile agent takes its siblings' memory. So the sum is held against the machine
 * before a run begins. What the user did not choose is lowered until it fits; what does not fit then is refused.
 */
import { AlidadeError } from "../base/errors.ts";
import type { Task } from "../base/schema/task.ts";
import { gradeLimits } from "../graders/index.ts";
import type { Room, SandboxBackend } from "../sandboxes/index.ts";
import { acceptedTasks } from "./accepted/accepted-tasks.ts";
import type { Concurrency } from "./slots.ts";

/** Nothing is left to a default. */
type SlotCounts = Required<Concurrency> & { warm: number };

/** As the configuration says it: what is left out was left to us. */
export type WantedConcurrency = {
  init: number;
  run?: number | undefined;
  post?: number | undefined;
  /** Sandboxes that are kept warm, of agents or graders. Default: 0. */
  warm?: number;
};

/** More would wait for the engine; fewer leave it idle while sandboxes are made and graded. */
const usual = { run: 4, post: 2 };

export type Fitted = {
  concurrency: Concurrency;
  /** For people, where it is less than usual. */
  note: string | null;
};

type Needs = { task: Task; agent: Room; grader: Room };
type Resource = keyof Room;

/** Throws `config_invalid` naming the numbers and the fields, unless `overcommit` says that the user knows better. */
export function fitMachine(
  tasks: Task[],
  samples: number,
  wanted: WantedConcurrency,
  backend: Pick<SandboxBackend, "takes">,
  room: Room,
  overcommit: boolean,
): Fitted {
  const candidates = candidatesOf(wanted);
  const [first] = candidates as [SlotCounts];
  if (overcommit) return { concurrency: first, note: null };
  const needs = tasks.map((task) => needsOf(task, backend));
  const concurrency = candidates.find((candidate) => shortOf(candidate, needs, samples, room) === null);
  if (concurrency === undefined) throw refusal(candidates, needs, samples, room);
  const isLess = concurrency.run < first.run || concurrency.post < first.post || concurrency.rollouts < first.rollouts;
  return { concurrency, note: isLess ? noteOf(first, concurrency, needs, samples, room) : null };
}

function needsOf(task: Task, backend: Pick<SandboxBackend, "takes">): Needs {
  const { services } = task.environment;
  return { task, agent: backend.takes(task.limits, services), grader: backend.takes(gradeLimits(task.limits), services) };
}

export type FitOptions = {
  backend: Pick<SandboxBackend, "takes">;
  room: Room;
  overcommit: boolean;
  onLeftOut: (error: AlidadeError) => void;
  mayBeNone?: boolean;
};

/** How many rollouts of each task there are, and what is to go on at once. */
export type RolloutsWanted = { samples: number; concurrency: WantedConcurrency };

/**
 * The tasks of which this machine holds a sandbox, and as many of them as the chosen numbers ask for; `onLeftOut` gets the
 * error of each other one. Throws them where none is left, unless that may be.
 */
export async function tasksThatFit(tasks: Task[], wanted: RolloutsWanted, options: FitOptions): Promise<Task[]> {
  const { onLeftOut, mayBeNone = false } = options;
  const alone = await acceptedTasks(tasks, (task) => assertFits([task], oneAtATime, options), onLeftOut, mayBeNone);
  if (fits(alone, wanted, options)) return alone;
  // What takes more than the share of a slot is in the way of the others.
  const ofSlots = { ...wanted, samples: Number.MAX_SAFE_INTEGER };
  const small = alone.filter((task) => fits([task], ofSlots, options));
  // Where most of them do, the numbers are at fault: `fitMachine` says so.
  if (small.length * 2 < alone.length || !fits(small, wanted, options)) return alone;
  return acceptedTasks(alone, (task) => assertFits([task], ofSlots, options), onLeftOut, mayBeNone);
}

/** A sandbox of an agent or a grader. */
export const oneAtATime: RolloutsWanted = { samples: 1, concurrency: { init: 1 } };

function assertFits(tasks: Task[], { samples, concurrency }: RolloutsWanted, { backend, room, overcommit }: FitOptions): void {
  fitMachine(tasks, samples, concurrency, backend, room, overcommit);
}

function fits(tasks: Task[], wanted: RolloutsWanted, options: FitOptions): boolean {
  try {
    assertFits(tasks, wanted, options);
    return true;
  } catch {
    return false;
  }
}

/** From the requested numbers down to the least that a run needs: one sandbox at a time, of an agent or a grader. */
function candidatesOf({ init, run, post, warm = 0 }: WantedConcurrency, most = usual): SlotCounts[] {
  const parallel = downFrom(run, most.run).flatMap((runs) =>
    downFrom(post, most.post).flatMap((posts) =>
      [1, 0].map((ahead) => ({ rollouts: Number.POSITIVE_INFINITY, init, run: runs, post: posts, ahead, warm })),
    ),
  );
  const isOneAllowed = (run ?? 1) === 1 && (post ?? 1) === 1 && warm === 0;
  return isOneAllowed ? [...parallel, { rollouts: 1, init, run: 1, post: 1, ahead: 0, warm }] : parallel;
}

function downFrom(chosen: number | undefined, most: number): number[] {
  return chosen === undefined ? Array.from({ length: most }, (_, index) => most - index) : [chosen];
}

/** The resource that the slots may take more of than there is, with both numbers in MiB; null: they fit. */
function shortOf(
  concurrency: SlotCounts,
  needs: Needs[],
  samples: number,
  room: Room,
): { resource: Resource; takes: number; has: number } | null {
  for (const resource of ["memory_mb", "disk_mb"] as const) {
    const has = room[resource];
    const takes = sumOf(concurrency, needs, samples, resource);
    if (has !== null && takes > has) return { resource, takes, has };
  }
  return null;
}

/** A warm sandbox counts in full, like one that is prepared ahead, though nothing runs in it yet. */
function sumOf({ rollouts, run, post, ahead, warm }: SlotCounts, needs: Needs[], samples: number, resource: Resource): number {
  const agents = needs.map(({ agent }) => agent[resource] ?? 0);
  const graders = needs.map(({ grader }) => grader[resource] ?? 0);
  if (rollouts === 1) return Math.max(0, ...agents, ...graders);
  const inSlots = largest(agents, samples, run + ahead) + largest(graders, samples, post);
  return inSlots + warm * Math.max(0, ...agents, ...graders);
}

/** The sum of the `count` largest, where each is there `times` times. */
function largest(values: number[], times: number, count: number): number {
  let left = count;
  let sum = 0;
  for (const value of values.toSorted((a, b) => b - a)) {
    sum += value * Math.min(times, left);
    left -= Math.min(times, left);
  }
  return sum;
}

const words = { memory_mb: "memory", disk_mb: "disk" } as const;

function refusal(candidates: SlotCounts[], needs: Needs[], samples: number, room: Room): AlidadeError {
  const least = candidates.at(-1) as SlotCounts;
  const short = shortOf(least, needs, samples, room);
  if (short === null) throw new Error("it fits");
  const { resource, takes, has } = short;
  const worst = needs.toSorted((a, b) => (b.grader[resource] ?? 0) - (a.grader[resource] ?? 0))[0] as Needs;
  const machine = `this machine has ${gibibytes(has)} for sandboxes`;
  const lower = `${limitsOf(worst, resource)} of task ${worst.task.task_id}, or set overcommit (--overcommit) where you know better`;
  if (least.rollouts === 1)
    return new AlidadeError(
      "config_invalid",
      `one sandbox of task ${worst.task.task_id} may take ${gibibytes(takes)} of ${words[resource]} while it is graded, and ${machine}: lower ${lower}`,
      { param: `limits.${resource}` },
    );
  const fitting = candidatesOf({ init: least.init, warm: least.warm }, least).find(
    (candidate) => shortOf(candidate, needs, samples, room) === null,
  );
  const lessWarm = least.warm > 0 ? "lower warm.sandboxes, or " : "";
  const atOnce = fitting === undefined ? lessWarm : `lower concurrency.run to ${fitting.run} and concurrency.post to ${fitting.post}, or `;
  return new AlidadeError(
    "config_invalid",
    `concurrency.run ${least.run}${least.warm > 0 ? `, warm.sandboxes ${least.warm}` : ""} and concurrency.post ${least.post} let sandboxes take ${gibibytes(takes)} of ${words[resource]}, and ${machine}: ${atOnce}${atOnce === "" ? "lower " : ""}${lower}`,
    { param: "concurrency.run" },
  );
}

function noteOf(usually: SlotCounts, concurrency: SlotCounts, needs: Needs[], samples: number, room: Room): string {
  const short = shortOf(usually, needs, samples, room);
  if (short === null) return "";
  const { resource, takes, has } = short;
  const [worst] = needs.toSorted((a, b) => (b.agent[resource] ?? 0) - (a.agent[resource] ?? 0)) as [Needs];
  const now =
    concurrency.rollouts === 1 ? "one sandbox is there at a time" : `concurrency is run ${concurrency.run}, post ${concurrency.post}`;
  return `${usually.run} harnesses and ${usually.post} gradings at once may take ${gibibytes(takes)} of ${words[resource]}, and this machine has ${gibibytes(has)} for sandboxes: ${now}; lower ${limitsOf(worst, resource)} of the tasks for more, or set overcommit`;
}

function limitsOf({ task }: Needs, resource: Resource): string {
  return `limits.${resource} (${task.limits[resource]})`;
}

function gibibytes(megabytes: number): string {
  return `${(megabytes / 1024).toFixed(1)} GiB`;
}
