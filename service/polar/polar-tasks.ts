/**
 * Tasks of Polar's over the ledger: each is a set with one group, so what holds for sets holds for them. All of it lies in the
 * ledger but the addresses to call back.
 */
import { AlidadeError, asAlidadeError } from "../../base/errors.ts";
import type { Task } from "../../base/schema/task.ts";
import { assertTakesTask } from "../../rollouts/accepted/index.ts";
import type { TrainerLedger } from "../callers/trainer-ledger.ts";
import { SetSpec, type SetState } from "../ledger/index.ts";
import type { ServiceParts } from "../service-parts.ts";
import type { Callbacks } from "./callbacks.ts";
import { mostSamples, nativeTask, type PolarRequest, setSpecOf } from "./polar-request.ts";
import { sessionResult } from "./polar-result.ts";

const prefix = "polar/";
/** A task that was cancelled before it came. */
const tombstone = SetSpec.parse({ samples: 1, labels: { polar: "cancelled before it was submitted" } });

type PolarParts = Omit<ServiceParts, "ledger">;

/** `ledger`: of the token that asks. A task is a set of its namespace, so two namespaces may have tasks of one id. */
export class PolarTasks {
  readonly #parts: PolarParts;
  readonly #callbacks: Callbacks;

  constructor(parts: PolarParts, callbacks: Callbacks) {
    this.#parts = parts;
    this.#callbacks = callbacks;
  }

  /** The same request again is the same task. Throws `request_invalid`: 400 naming the field, 409 for another task of this id. */
  async submit(ledger: TrainerLedger, request: PolarRequest): Promise<void> {
    const { harnessNamed, demands } = this.#parts;
    const { task_id, callback_url } = request;
    const spec = { ...setSpecOf(request), ...demands };
    if (callback_url != null) this.#callbacks.assertMayCall(callback_url, ledger.namespace);
    const harness = await inField("agent.harness", () => harnessNamed(spec.harness)).catch((error: unknown) => {
      throw withAdvice(error, "for a program of your own, start the service with it as its command, and send null");
    });
    const task = await this.#taskOf(request);
    if (harness) await inField("agent.harness", () => assertTakesTask(task, harness));
    const set = await ledger.putSet(prefix + task_id, spec).catch(refuseOther(task_id));
    await ledger.submit(set.set_id, [{ group_key: task_id, task, places: null }]).catch(refuseOther(task_id));
    await ledger.drain(set.set_id);
    if (callback_url == null) return;
    const { namespace } = ledger;
    this.#callbacks.add(set.set_id, { url: callback_url, namespace, answer: () => this.answer(ledger, task_id) });
  }

  /** JSON of Polar's TaskStatus. Throws `not_found`. */
  async answer(ledger: TrainerLedger, task_id: string): Promise<string> {
    const { blobs } = this.#parts;
    const state = await ledger.set(await setOf(ledger, task_id));
    const rows = (await ledger.results(state.set_id, null, mostSamples)).map(({ row }) => row).toSorted((a, b) => a.index - b.index);
    const results: string[] = [];
    for (const row of rows) results.push(JSON.stringify(await sessionResult(blobs, task_id, row, state.spec)));
    const total_sessions = isTombstone(state) ? 0 : state.spec.samples;
    const status = { task_id, status: statusOf(state), total_sessions, completed_sessions: rows.length, result_paths: [] };
    return `${JSON.stringify(status).slice(0, -1)},"results":[${results.join(",")}]}`;
  }

  /** `isToCome`: a task that is not there is refused when it comes. Throws `not_found`. */
  async cancel(ledger: TrainerLedger, task_id: string, isToCome: boolean): Promise<void> {
    const set = await setOf(ledger, task_id).catch(async (error: unknown) => {
      if (!isToCome) throw error;
      return (await ledger.putSet(prefix + task_id, tombstone)).set_id;
    });
    await ledger.cancel({ set }, "cancelled over Polar's routes");
    await ledger.drain(set);
  }

  async statuses(ledger: TrainerLedger): Promise<Record<string, string>> {
    const tasks = (await ledger.ownSets()).filter(({ key }) => key.startsWith(prefix));
    return Object.fromEntries(tasks.map((state) => [state.key.slice(prefix.length), statusOf(state)]));
  }

  async #taskOf(request: PolarRequest): Promise<Task> {
    const { instruction, runtime, evaluator, metadata, timeout_seconds } = request;
    const agent_seconds = (metadata.agent_timeout ?? timeout_seconds) as number | undefined;
    if (metadata.alidade_task == null) return inPolarsWords(() => this.#parts.taskOf(nativeTask(request)));
    for (const [param, given] of Object.entries({ runtime, evaluator }))
      if (given != null)
        throw new AlidadeError("request_invalid", `${param} stands beside metadata.alidade_task, whose task has its own: leave one out`, {
          param,
        });
    const task = await inField("metadata.alidade_task", () => this.#parts.taskOf(metadata.alidade_task));
    return { ...task, instruction, limits: { ...task.limits, ...(agent_seconds && { agent_seconds }) } };
  }
}

/** Throws `not_found`. */
async function setOf(ledger: TrainerLedger, task_id: string): Promise<string> {
  const set = await ledger.setNamed(prefix + task_id);
  if (set !== null) return set;
  throw new AlidadeError("not_found", `there is no task "${task_id.slice(0, 100)}" of Polar's routes`, { param: "task_id" });
}

function statusOf(state: SetState): "running" | "completed" | "cancelled" {
  if (!state.is_over) return "running";
  const { cancelled, completed } = state.rollouts;
  const hasEnough = completed >= (state.spec.early_stop ?? Number.POSITIVE_INFINITY);
  return isTombstone(state) || (cancelled > 0 && !hasEnough) ? "cancelled" : "completed";
}

function isTombstone({ spec }: SetState): boolean {
  return spec.labels.polar === tombstone.labels.polar;
}

const refuseOther =
  (task_id: string) =>
  (error: unknown): never => {
    if (asAlidadeError(error, "internal").status !== 409) throw error;
    const message = `task_id is "${task_id.slice(0, 100)}": a task of this id was submitted with other content, or cancelled before it was submitted`;
    throw new AlidadeError("request_invalid", message, { status: 409, param: "task_id", cause: error });
  };

/** The field of Polar's that became a field of ours. */
async function inPolarsWords<T>(work: () => Promise<T>): Promise<T> {
  return work().catch((error: unknown) => {
    const { param } = asAlidadeError(error, "internal");
    throw named(
      error,
      param
        ?.replace(/^grader\.kind$/, "evaluator.strategy")
        .replace(/^grader\./, "evaluator.config.")
        .replace(/^environment\./, "runtime.") ?? null,
    );
  });
}

async function inField<T>(param: string, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw named(error, param);
  }
}

function withAdvice(error: unknown, advice: string): AlidadeError {
  const { code, message, status, param } = asAlidadeError(error, "internal");
  return new AlidadeError(code, `${message}; ${advice}`, { status, param, cause: error });
}

function named(error: unknown, param: string | null): AlidadeError {
  const { code, message, status } = asAlidadeError(error, "internal");
  return new AlidadeError(code, param === null || message.includes(param) ? message : `${param}: ${message}`, {
    status,
    param,
    cause: error,
  });
}
