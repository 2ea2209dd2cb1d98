/** Plans of rollouts that begin with the recorded turns of another one. All that can be wrong is said before a sandbox is made. */
import { AlidadeError } from "../../base/errors.ts";
import { hashOfTask } from "../../base/schema/ids.ts";
import type { RolloutRecord } from "../../base/schema/rollout.ts";
import { SessionOptions } from "../../base/schema/session-spec.ts";
import type { Task } from "../../base/schema/task.ts";
import type { EngineFacts } from "../../engines/index.ts";
import type { Harness } from "../../harnesses/index.ts";
import { type Cut, cutAfter, editedAnswer, Replay, type SessionRecording, whyNoRecordedPrompt } from "../../proxy/index.ts";
import type { RolloutPlan } from "../rollout-plan.ts";
import { whyNotReplayed, whyUnrepeatable } from "./why-not-replayed.ts";

export type ReplayOrder = {
  run_id: string;
  /** A word that tells its groups from others of the run; left out: there is one. */
  group?: string;
  record: RolloutRecord;
  recording: SessionRecording;
  task: Task;
  harness: Harness;
  /** The last turn that is answered from the record, as `alidade show` numbers them; null: all of them are. */
  turn: number | null;
  /** Rollouts that go on from there, and at what; null: one, which ends there. */
  sampled: { samples: number; engines: readonly EngineFacts[]; rendered: boolean; model: string | null; edit: string | null } | null;
  words: "end" | "go_on";
  /** Replay also what may come to something else. */
  unrepeatable: boolean;
};

/** Throws `config_invalid` or `request_invalid`, naming what is wrong. */
export function toReplayPlans(order: ReplayOrder): RolloutPlan[] {
  const { run_id, record, recording, task, harness, sampled, words } = order;
  assertSame(order);
  const turn = order.turn ?? null;
  const found = cutAfter(recording, turn);
  const edited = sampled?.edit != null ? answerInPlace(order, found, sampled.edit) : null;
  const cut = edited === null ? found : { ...found, next: null };
  if (sampled !== null && edited === null) assertGoesOn(found, turn, sampled);
  const { spec, session_id } = recording.opened;
  const rendered = sampled !== null && (sampled.rendered || sampled.model !== null);
  const forked_from = { rollout_id: record.rollout_id, session_id, turn: found.last?.number ?? 0, edited: edited !== null, rendered };
  const first = recording.calls[0]?.call.begun.model ?? "model";
  const open = () => new Replay({ recording, cut, words, rendered, edited, after: sampled === null ? "stop" : "sample" });
  const options = SessionOptions.parse(
    Object.fromEntries(Object.keys(SessionOptions.shape).map((key) => [key, spec[key as keyof typeof spec]])),
  );
  const group_id = [run_id, ...(order.group === undefined ? [] : [order.group]), task.task_id].join("-");
  const samples = sampled?.samples ?? 1;
  return Array.from({ length: samples }, (_, sample_index) => ({
    rollout_id: `${group_id}-${sample_index}`,
    attempt: 1,
    retries: 0,
    task,
    task_hash: record.task_hash,
    group_id,
    group_size: samples,
    sample_index,
    harness,
    session: sampled === null ? { ...options, purpose: "eval", model: null } : { ...options, model: sampled.model ?? options.model },
    replay: { forked_from, model: sampled?.model ?? spec.model ?? first, context_window: spec.context_window, open },
  }));
}

function assertSame({ record, task, harness, unrepeatable }: ReplayOrder): void {
  if (record.session_id === null) throw invalid("rollout", `rollout ${record.rollout_id} has no session that could be replayed`);
  if (harness.name !== record.harness || harness.version !== record.harness_version)
    throw invalid(
      "harness",
      `rollout ${record.rollout_id} was made by ${titleOf(record.harness, record.harness_version)}, and this is ${titleOf(harness.name, harness.version)}: a replay needs the same harness`,
    );
  if (hashOfTask(task) !== record.task_hash)
    throw invalid(
      "tasks",
      `task ${task.task_id} is another one than when rollout ${record.rollout_id} was made: a replay needs the same task`,
    );
  const not = whyNotReplayed(task);
  if (not !== null) throw invalid("tasks", `task ${task.task_id} ${not}`);
  const why = unrepeatable ? null : whyUnrepeatable(task);
  if (why !== null)
    throw invalid(
      "unrepeatable",
      `task ${task.task_id} ${why}, so its commands may come to something else: add --unrepeatable to replay it all the same`,
    );
}

function titleOf(name: string, version: string | null): string {
  return version === null ? name : `${name} ${version}`;
}

function answerInPlace({ recording }: ReplayOrder, { last }: Cut, answer: string) {
  if (last === null)
    throw new AlidadeError("request_invalid", "--edit replaces the answer of a turn: name it with --at", { param: "edit" });
  return editedAnswer(recording, last, answer);
}

function assertGoesOn({ next }: Cut, turn: number | null, { engines, rendered, model }: NonNullable<ReplayOrder["sampled"]>): void {
  if (next === null)
    throw new AlidadeError("request_invalid", `turn ${turn} is the last one: nothing was asked behind it`, { param: "at" });
  if (rendered || model !== null) return;
  const reasons = engines.map((facts) => whyNoRecordedPrompt(next, facts));
  if (reasons.some((why) => why === null)) return;
  throw new AlidadeError(
    "request_invalid",
    `the prompt of turn ${next.number} cannot be sampled on token for token: ${reasons[0] ?? "there is no engine"}; --rendered takes a prompt that the engine renders anew`,
    { param: "rendered" },
  );
}

function invalid(param: string, message: string): AlidadeError {
  return new AlidadeError("config_invalid", message, { param });
}
