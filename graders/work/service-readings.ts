/**
 * Reads the state of a task's services before the agent began and after it ended, and their answers to the graders' questions.
 * The readings are kept as works are, so a rollout is graded again without its services.
 */
import { Readable } from "node:stream";
import { AlidadeError } from "../../base/errors.ts";
import type { TreeFile } from "../../base/files/file-tree.ts";
import { keepLayer, type LayerEntry, type WorkLayer } from "../../base/files/layer.ts";
import type { Task } from "../../base/schema/task.ts";
import type { Sandbox } from "../../sandboxes/index.ts";
import type { Grader, ServiceReadings } from "../grader.ts";
import { withParts } from "../registry.ts";
import { answerPath, answersWell, askService, type QuestionToService, type ServiceReply, statePath } from "./ask-service.ts";
import type { Exceptions } from "./state-differs.ts";
import { whereThereIsSpace } from "./work.ts";

/** Keeps a reading in `<folder>/<hash>.tar.gz`. The services are paused meanwhile. Returns null if the task reads none of them. */
export async function readServicesBefore(
  sandbox: Sandbox,
  task: Task,
  folder: string,
  asked: ServiceReadOptions,
): Promise<WorkLayer | null> {
  if (readsNothing(task, asked.graders)) return null;
  return keepReadings(await stateOf(sandbox, task, { end: false, ...asked }), new Map(), folder);
}

type ServiceReadOptions = { signal: AbortSignal; graders?: readonly Grader[] | undefined };

/** Tells for each question without an answer whether what the agent did is why. */
export type FindDoing = (questions: QuestionToService[]) => Promise<boolean[]>;

/**
 * Reads the services once the agent has ended: asks its questions first, then reads their state. `end`: ends them before that,
 * so that they write to disk what they hold in memory. Without `end` they are only paused. `answers`: what the agent said in
 * turns that call no tool, in order.
 */
export async function readServicesAfter(
  sandbox: Sandbox,
  task: Task,
  before: WorkLayer,
  folder: string,
  { end, answers, findDoing, ...asked }: ServiceReadOptions & { end: boolean; answers: readonly string[]; findDoing: FindDoing },
): Promise<ServiceReadings> {
  const replies = new Map<string, ServiceReply>();
  // Several checks may look into one answer.
  const questions = [...new Map(questionsOf(task, asked.graders).map((question) => [answerPath(question), question])).values()];
  for (const question of questions) replies.set(answerPath(question), await askService(sandbox, question, answers, asked.signal));
  await noteDoing(questions, replies, findDoing);
  return { before, after: await keepReadings(await stateOf(sandbox, task, { end, ...asked }), replies, folder) };
}

/** Does a grader send the agent's answers to a service? */
export function sendsAnswers(task: Task, graders?: readonly Grader[]): boolean {
  return questionsOf(task, graders).some((question) => "post" in question);
}

async function noteDoing(questions: readonly QuestionToService[], answers: Map<string, ServiceReply>, findDoing: FindDoing): Promise<void> {
  const failed = questions.flatMap((question) => {
    const reply = answers.get(answerPath(question));
    return reply === undefined || answersWell(reply) ? [] : [{ question, reply }];
  });
  const doings = await findDoing(failed.map(({ question }) => question));
  for (const [index, { question, reply }] of failed.entries()) {
    if (doings[index] !== true) continue;
    const problem =
      "problem" in reply ? reply.problem : `${"get" in question ? question.get : question.post} had the status ${reply.status}`;
    answers.set(answerPath(question), { problem, by_agent: true });
  }
}

function questionsOf({ grader }: Task, graders?: readonly Grader[]): QuestionToService[] {
  return withParts(grader, graders).flatMap(({ grader: own, spec }) => own.asksServices?.(spec) ?? []);
}

/** What the task's graders let differ in databases of its services. */
export function exceptionsOf({ grader }: Task, graders?: readonly Grader[]): Exceptions {
  const all = withParts(grader, graders).flatMap(({ grader: own, spec }) => own.allows?.(spec) ?? []);
  return new Map(all.map(({ service, file, except }) => [statePath(service, file), except]));
}

function readsNothing(task: Task, graders?: readonly Grader[]): boolean {
  const states = Object.values(task.environment.services ?? {}).flatMap(({ state }) => state);
  return states.length === 0 && questionsOf(task, graders).length === 0;
}

/** Reads all services at once: a service that ignores its stop signal delays only its own reading. */
async function stateOf(
  sandbox: Sandbox,
  { environment }: Task,
  { end, signal }: ServiceReadOptions & { end: boolean },
): Promise<TreeFile[]> {
  const named = Object.entries(environment.services ?? {}).filter(([, { state }]) => state.length > 0);
  const read = named.map(async ([name]) => {
    if (!sandbox.readState) throw new AlidadeError("sandbox_error", "This sandbox cannot read the state of a service.");
    const files = await sandbox.readState(name, { end, signal });
    return files.map((file) => ({ ...file, path: statePath(name, `/${file.path}`) }));
  });
  const all = await Promise.allSettled(read);
  for (const one of all) if (one.status === "rejected") throw one.reason;
  return (await Promise.all(read)).flat();
}

function keepReadings(files: TreeFile[], answers: Map<string, ServiceReply>, folder: string): Promise<WorkLayer> {
  const said = [...answers].map(([path, answer]) => ({ path, content: Buffer.from(JSON.stringify(answer)), mode: 0o644 }));
  return whereThereIsSpace(folder, keepLayer(entriesOf([...files, ...said]), folder));
}

async function* entriesOf(files: TreeFile[]): AsyncGenerator<LayerEntry> {
  const rest = { type: "file", kind: "added", owner: null, mtime: new Date(0), target: null } as const;
  for (const { path, content, mode } of files) yield { ...rest, path, mode, size: content.length, content: Readable.from([content]) };
}
