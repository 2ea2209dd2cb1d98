/**
 * RUN of a task with a user. The harness starts with the first message. When its run has ended, the user answers the agent's last
 * turn, and the harness continues the conversation in a new process. The user is asked only between runs of the harness, so a
 * stop word never interrupts the agent's work.
 */
import { AlidadeError, asAlidadeError } from "../../base/errors.ts";
import { textOf } from "../../base/schema/message.ts";
import type { UserRecord } from "../../base/schema/rollout.ts";
import type { SimulatedUser } from "../../base/schema/simulated-user.ts";
import { answeredCalls } from "../../graders/index.ts";
import type { HarnessLaunch } from "../../harnesses/index.ts";
import { toErrorRecord } from "../../proxy/index.ts";
import { reconstruct } from "../../reconstruct/index.ts";
import type { PreparedRollout } from "../prepare.ts";
import type { RolloutPlan } from "../rollout-plan.ts";
import { brokenRun, failedRun, type HarnessRun, runHarness } from "../run-harness.ts";
import type { RunSetup } from "../run-setup.ts";
import { UserModel } from "./user-model.ts";

type DialogueOrder = {
  setup: RunSetup;
  plan: RolloutPlan;
  prepared: PreparedRollout;
  /** Gets the user's record after each of its messages. */
  onUser: (record: UserRecord) => void;
};

/** Returns the last run of the harness. If the machine of the user's model fails, nothing is measured. */
export async function runDialogue(order: DialogueOrder, spec: SimulatedUser, signal: AbortSignal): Promise<HarnessRun> {
  const { setup, plan, prepared, onUser } = order;
  const { task, rollout_id } = plan;
  const first = spec.opening === undefined ? task.instruction : null;
  try {
    const { task_id } = task;
    await using user = await UserModel.open(setup.proxy, spec, { task_id, rollout_id, first, model: prepared.model });
    try {
      return await converse(order, user, spec, signal);
    } finally {
      onUser(user.record);
    }
  } catch (error) {
    signal.throwIfAborted();
    const failure = asAlidadeError(error, "internal");
    if (failure.owner === "policy") throw failure;
    return brokenRun(toErrorRecord(failure));
  }
}

async function converse(order: DialogueOrder, user: UserModel, { opening }: SimulatedUser, signal: AbortSignal): Promise<HarnessRun> {
  const { setup, plan, prepared } = order;
  const { session } = prepared;
  let launch = prepared.launch;
  if (opening !== undefined) {
    const first = await user.answer(opening, signal);
    if (first.end !== null) throw new AlidadeError("user_failed", `the task's user ended the conversation before it began (${first.end})`);
    const begun = await launchWith(order, `${plan.task.instruction}\n\n${first.text}`, "begins", signal);
    if (begun === null) throw new AlidadeError("user_failed", "the first message of the task's user cannot be given to the harness");
    launch = begun;
  }
  for (let seconds = plan.task.limits.agent_seconds; ; ) {
    const [started, calls] = [Date.now(), session.callCount];
    const run = await runHarness(setup, plan, { ...prepared, launch }, signal, seconds);
    // Count neither the user's time nor the time of a weight update.
    seconds -= Math.max(0, Date.now() - started - session.pausedSince(started, Date.now())) / 1000;
    if (run.infrastructure !== null || run.failure !== null || run.stop_reason !== "exited") return run;
    if (session.callCount === calls) return failedRun(run, noCall(plan));
    if (seconds <= 0) return failedRun(run, outOfTime(plan));
    const said = await lastSaid(order, calls);
    if (said === null) {
      user.endBy("agent_silent");
      return run;
    }
    const turn = await user.answer(said, signal);
    order.onUser(user.record);
    if (turn.end !== null) return run;
    const next = await launchWith(order, turn.text, "goes_on", signal);
    if (next === null) {
      user.endUnheard();
      return run;
    }
    session.allowCalls();
    prepared.tools?.goOn();
    launch = next;
  }
}

/** Returns null if the harness cannot take the text, such as one with a NUL. */
async function launchWith(
  { prepared }: DialogueOrder,
  instruction: string,
  dialogue: "begins" | "goes_on",
  signal: AbortSignal,
): Promise<HarnessLaunch | null> {
  try {
    return await prepared.launchFor(instruction, signal, dialogue);
  } catch (error) {
    if (!(error instanceof AlidadeError) || error.code !== "task_invalid") throw error;
    return null;
  }
}

/** The text of the agent's last turn after the first `calls` calls; null: it calls a tool, has no text or did not arrive. */
async function lastSaid({ setup, prepared }: DialogueOrder, since: number): Promise<string | null> {
  const trajectory = reconstruct(await setup.proxy.sessions.store.read(prepared.session.id));
  const last = answeredCalls(trajectory).at(-1);
  const isNew = last !== undefined && last.ordinal >= since;
  const message = isNew ? trajectory.messages[last.output ?? ""] : undefined;
  if (message === undefined || message.parts.some(({ type }) => type === "tool_call")) return null;
  const text = textOf(message);
  return text.trim() === "" ? null : text;
}

function noCall({ harness }: RolloutPlan): AlidadeError {
  const message = `${harness.name} made no call to the LLM when it had to continue its conversation: the conversation that it kept below its home may be gone`;
  return new AlidadeError("harness_failed", message);
}

function outOfTime({ harness, task }: RolloutPlan): AlidadeError {
  return new AlidadeError("harness_timeout", `${harness.name} used up its ${task.limits.agent_seconds} s before the conversation was over`);
}
