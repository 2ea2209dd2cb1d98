/**
 * Finds out whose doing it is that services of a rollout do not answer any more. New ones are started on the same machine and
 * asked the same. Then they get the calls that the agent made, and are asked again. So a hang or a crash that the agent's calls
 * bring about is a result, and no way out of a bad one.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { Deadline } from "../../base/host/deadline.ts";
import { ownPlace, type ToolServer } from "../../base/schema/environment/tool-servers.ts";
import type { Task } from "../../base/schema/task.ts";
import type { ToolRun } from "../../base/schema/trajectory.ts";
import { answersWell, askService, type QuestionToService } from "../../graders/index.ts";
import type { ToolRelay } from "../../proxy/index.ts";
import type { Sandbox } from "../../sandboxes/index.ts";
import { playCall, playCalls } from "./play-calls.ts";

/** What did not answer: a server of tools to a ping, or a service to a grader's question. */
export type UnansweredService = { server: string; service: string } | QuestionToService;

export type ServiceTrial = {
  task: Task;
  /** The tool runs of the rollout, in their order. */
  runs: readonly ToolRun[];
  /** The agent's sandbox. */
  sandbox: Pick<Sandbox, "mayHaveEnded">;
  /** Makes a sandbox of the task, with new services and without an agent. */
  create: (signal: AbortSignal) => Promise<Sandbox>;
};

/** A service may end some time after the call that ends it. */
const afterwardsMs = 5_000;
const askAgainMs = 500;

/**
 * Tells for each question whether what the agent did is why it has no answer. False where new services do not answer it
 * either, where they stop answering without the calls too, and where nothing shows that the agent did it. Rejects only for
 * the signal.
 */
export async function areAgentsDoing(
  questions: readonly UnansweredService[],
  trial: ServiceTrial,
  signal: AbortSignal,
): Promise<boolean[]> {
  const none = questions.map(() => false);
  if (questions.length === 0) return none;
  // Without the turns between them the same calls take less time. A second set of services gets as much.
  using limit = new Deadline(2 * (trial.task.limits.init_seconds + trial.task.limits.agent_seconds) * 1000);
  const within = AbortSignal.any([signal, limit.signal]);
  try {
    return await decided(questions, trial, within);
  } catch {
    signal.throwIfAborted();
    return none;
  }
}

async function decided(questions: readonly UnansweredService[], trial: ServiceTrial, signal: AbortSignal): Promise<boolean[]> {
  const may = await Promise.all(questions.map(({ service }) => trial.sandbox.mayHaveEnded?.(service) ?? false));
  // What runs in the agent's own sandbox is no service.
  const servers = (trial.task.environment.tools ?? []).filter(({ service }) => service !== ownPlace);
  const runs = trial.runs.filter(({ server }) => servers.some(({ name }) => name === server));
  if (runs.length === 0 && !may.some(Boolean)) return may;
  const order = { questions, create: trial.create, servers };
  const called = await tried({ ...order, runs, afterMs: runs.length === 0 ? 0 : afterwardsMs }, signal);
  const broken = called.map(({ before, after }) => before && !after);
  const alone = broken.some(Boolean) ? await tried({ ...order, runs: [], afterMs: called[0]?.ms ?? 0 }, signal) : [];
  return called.map(({ before }, index) => before && (broken[index] ? alone[index]?.after === true : may[index] === true));
}

/** `afterMs`: how long new services are asked again and again, until they do not answer. */
type TrialOrder = Pick<ServiceTrial, "create" | "runs"> & {
  questions: readonly UnansweredService[];
  servers: readonly ToolServer[];
  afterMs: number;
};

/** For each question: whether new services answer it before the calls and after them. `ms`: how long all of it took. */
async function tried({ create, questions, servers, runs, afterMs }: TrialOrder, signal: AbortSignal) {
  await using sandbox = await create(signal);
  const started = performance.now();
  await using play = await playCalls(servers, sandbox, signal);
  const askAll = () => Promise.all(questions.map((question) => isAnswered(question, sandbox, play.relay, signal)));
  const before = await askAll();
  await replay(play.relay, runs, signal);
  let after = await askAll();
  for (const until = performance.now() + afterMs; after.every(Boolean) && performance.now() < until; after = await askAll())
    await sleep(askAgainMs, undefined, { signal });
  const ms = performance.now() - started;
  return questions.map((_, index) => ({ before: before[index] === true, after: after[index] === true, ms }));
}

async function isAnswered(question: UnansweredService, sandbox: Sandbox, relay: ToolRelay, signal: AbortSignal): Promise<boolean> {
  if ("server" in question) return relay.isAlive(question.server, signal);
  return answersWell(await askService(sandbox, question, [], signal));
}

/** Runs that overlapped do so again: a service may fail because of two calls at once. */
async function replay(relay: ToolRelay, runs: readonly ToolRun[], signal: AbortSignal): Promise<void> {
  let open: { finished: number; ended: Promise<void> }[] = [];
  for (const run of runs) {
    signal.throwIfAborted();
    const over = open.filter(({ finished }) => finished <= run.times.begun);
    open = open.filter(({ finished }) => finished > run.times.begun);
    await Promise.all(over.map(({ ended }) => ended));
    open.push({ finished: run.times.finished ?? Number.POSITIVE_INFINITY, ended: playCall(relay, run) });
  }
  await Promise.all(open.map(({ ended }) => ended));
}
