/**
 * Checks many tasks, a few at once, and keeps each admission record as soon as it is known. A task with a record is not checked
 * again, also if it is quarantined: mending it gives it another hash.
 */
import { type AlidadeError, asAlidadeError } from "../../base/errors.ts";
import { Limiter } from "../../base/host/limiter.ts";
import type { AdmissionGrading, AdmissionRecord } from "../../base/schema/admission.ts";
import type { Verdict } from "../../base/schema/rollout.ts";
import { type Examination, type ExaminationOptions, examineTask } from "../../graders/admission/index.ts";
import type { SandboxBackend } from "../../sandboxes/index.ts";
import type { HashedTask } from "../../tasks/index.ts";
import { admissionFile, keepAdmission, readAdmission } from "./admission-records.ts";
import { examineCalls } from "./examine-calls.ts";

export type TaskCheck = {
  task_id: string;
  task_hash: string;
  /** `holds`, `fails`: found without a container, which admits no task. `unfinished`: the machine broke the check off. */
  outcome: "admitted" | "quarantined" | "holds" | "fails" | "unfinished";
  /** null: the check is unfinished. */
  record: AdmissionRecord | null;
  /** The file of the record; null: it is not kept. */
  file: string | null;
  /** The record existed before this check. */
  reused: boolean;
  error: AlidadeError | null;
  /** One for each grading, in their order; [] if `reused`. */
  verdicts: Verdict[];
};

export type AdmissionOptions = Omit<ExaminationOptions, "onGraded" | "word"> & {
  /** `checksVersion`. */
  version: string;
  atOnce: number;
  onGraded?: (task_id: string, grading: AdmissionRecord["gradings"][number]) => void;
};

/** Returns the existing records. null: a task has none, or was admitted by fewer gradings than `times`. */
export async function knownChecks(tasks: readonly HashedTask[], version: string, times: number): Promise<(TaskCheck | null)[]> {
  return Promise.all(
    tasks.map(async ({ task, hash }) => {
      const record = await readAdmission(hash, version);
      if (record === null || (record.admitted && record.times < times)) return null;
      const about = { task_id: task.task_id, task_hash: hash, file: admissionFile(hash), error: null, verdicts: [] };
      return { ...about, outcome: record.admitted ? "admitted" : "quarantined", record, reused: true } as const;
    }),
  );
}

/** Returns the checks in the order of the tasks. A task that cannot be checked is `unfinished`; the others go on. Rejects when the signal fires. */
export async function admitTasks(tasks: readonly HashedTask[], backend: SandboxBackend, options: AdmissionOptions): Promise<TaskCheck[]> {
  const limiter = new Limiter(options.atOnce);
  return Promise.all(tasks.map((one) => limiter.run(options.signal, () => admitTask(one, backend, options))));
}

async function admitTask({ task, hash }: HashedTask, backend: SandboxBackend, options: AdmissionOptions): Promise<TaskCheck> {
  const started = performance.now();
  const { task_id } = task;
  const about = { task_id, task_hash: hash, reused: false };
  try {
    const { onGraded = () => undefined, ...rest } = options;
    const examining = { ...rest, word: hash, onGraded: (grading: AdmissionGrading) => onGraded(task_id, grading) };
    const { gold_calls } = task;
    const found = gold_calls
      ? await examineCalls({ ...task, gold_calls }, backend, examining)
      : await examineTask(task, backend, examining);
    const record = recordOf(found, { task_id, task_hash: hash, backend: backend.name, started, options });
    const file = found.whole ? await keepAdmission(record) : null;
    return { ...about, outcome: outcomeOf(found), record, file, error: null, verdicts: found.verdicts };
  } catch (error) {
    options.signal.throwIfAborted();
    return { ...about, outcome: "unfinished", record: null, file: null, error: asAlidadeError(error, "sandbox_error"), verdicts: [] };
  }
}

function outcomeOf({ whole, reasons }: Examination): TaskCheck["outcome"] {
  const holds = reasons.length === 0;
  if (!whole) return holds ? "holds" : "fails";
  return holds ? "admitted" : "quarantined";
}

type RecordFacts = Pick<AdmissionRecord, "task_id" | "task_hash" | "backend"> & { started: number; options: AdmissionOptions };

function recordOf(found: Examination, { started, options, ...about }: RecordFacts): AdmissionRecord {
  const { gradings, leak_scan, reach, reasons, baseline, image_digest, whole } = found;
  return {
    ...about,
    version: options.version,
    made: new Date().toISOString(),
    image_digest,
    admitted: whole && reasons.length === 0,
    reasons,
    times: options.times,
    baseline,
    gradings,
    leak_scan,
    ...(reach && { reach }),
    duration_ms: performance.now() - started,
  };
}
