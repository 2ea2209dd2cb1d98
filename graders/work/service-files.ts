/** What graders look at in the readings of a task's services, before and after the agent. */
import { z } from "zod";
import { AlidadeError } from "../../base/errors.ts";
import { isBelow } from "../../base/files/file-tree.ts";
import type { WorkLayer } from "../../base/files/layer.ts";
import { readJson } from "../../base/schema/read-json.ts";
import type { Task } from "../../base/schema/task.ts";
import type { GradeContext, ServiceReadings } from "../grader.ts";
import { answerPath, type QuestionToService, type ServiceReply, statePath } from "./ask-service.ts";
import { contentsOf, databaseFiles, type FileContent, mostBytes } from "./layer-contents.ts";

/** A file of a service, by its absolute path there. */
export type ServiceFile = { service: string; file: string };

const Answer = z.union([
  z.strictObject({ status: z.number(), body: z.string().nullable() }),
  z.strictObject({ problem: z.string(), by_agent: z.boolean().optional() }),
]);

export class ServiceFiles {
  readonly #readings: ServiceReadings;
  readonly #before: Map<string, FileContent>;
  readonly #after: Map<string, FileContent>;

  private constructor(readings: ServiceReadings, before: Map<string, FileContent>, after: Map<string, FileContent>) {
    this.#readings = readings;
    this.#before = before;
    this.#after = after;
  }

  /** null where nothing is asked for. Throws `task_invalid` for what the task's services do not have, and `grader_error` where none was read. */
  static async open(
    { services, task }: Pick<GradeContext, "services" | "task">,
    wanted: { files: ServiceFile[]; questions: QuestionToService[]; changes: string[] },
  ): Promise<ServiceFiles | null> {
    const { files, questions, changes } = wanted;
    if (files.length + questions.length + changes.length === 0) return null;
    for (const one of files) assertInState(task, one);
    for (const service of [...changes, ...questions.map((one) => one.service)]) stateOf(task, service);
    if (services === undefined)
      throw new AlidadeError("grader_error", "The services of this task were not read: it is graded with them by a run alone.");
    const paths = new Set(files.flatMap(({ service, file }) => databaseFiles(file).map((path) => statePath(service, path))));
    // Each service may hold so much. What one holds must not keep another's files from being read.
    const room = mostBytes * Math.max(1, new Set([...files, ...questions].map(({ service }) => service)).size);
    const before = await contentsOf(services.before, paths, room);
    const after = await contentsOf(services.after, paths.union(new Set(questions.map(answerPath))), room);
    return new ServiceFiles(services, before, after);
  }

  /** null where there is no such file. */
  before({ service, file }: ServiceFile): FileContent {
    return this.#before.get(statePath(service, file)) ?? null;
  }

  after({ service, file }: ServiceFile): FileContent {
    return this.#after.get(statePath(service, file)) ?? null;
  }

  /** Throws `grader_error` where the service did not answer and that is not the agent's doing: it is no fact about the work then. */
  answer(question: QuestionToService): ServiceReply {
    const kept = this.#after.get(answerPath(question));
    const answer = Buffer.isBuffer(kept)
      ? Answer.parse(readJson(kept.toString("utf8")))
      : { problem: "it was not asked when the agent had ended", by_agent: false };
    if (!("problem" in answer)) return answer;
    if (answer.by_agent) return { problem: answer.problem, by_agent: true };
    throw new AlidadeError("grader_error", `The service ${question.service} gave no answer: ${answer.problem}`);
  }

  /** The files of a service's state that differ from what they were before the agent, by their absolute paths. */
  changed(service: string): string[] {
    const [before, after] = [hashesOf(this.#readings.before, service), hashesOf(this.#readings.after, service)];
    return [...new Set([...before.keys(), ...after.keys()])].filter((path) => before.get(path) !== after.get(path)).sort();
  }
}

function hashesOf({ changes }: WorkLayer, service: string): Map<string, string | null> {
  const root = statePath(service, "");
  return new Map(changes.flatMap(({ path, sha256 }) => (path.startsWith(`${root}/`) ? [[path.slice(root.length), sha256]] : [])));
}

function stateOf({ environment: { services = {} } }: Task, service: string): string[] {
  if (Object.hasOwn(services, service)) return services[service]?.state ?? [];
  throw new AlidadeError("task_invalid", `grader names the service ${service}: name one of environment.services.`, { param: "grader" });
}

function assertInState(task: Task, { service, file }: ServiceFile): void {
  if (stateOf(task, service).some((path) => isBelow(file, path))) return;
  const message = `grader reads ${file} of the service ${service}: add it, or a folder above it, to environment.services.${service}.state.`;
  throw new AlidadeError("task_invalid", message, { param: "grader" });
}
