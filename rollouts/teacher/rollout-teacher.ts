/**
 * The teacher of a run or a node. It scores each graded rollout before the trajectory is kept. If the teacher does not answer, the
 * rollout loses a bounded time and its scores. Its reward and its record stay.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { asAlidadeError, messageOf } from "../../base/errors.ts";
import { Deadline } from "../../base/host/deadline.ts";
import { Limiter } from "../../base/host/limiter.ts";
import type { TeacherReason, Trajectory } from "../../base/schema/trajectory.ts";
import { unscoredNodes, withTeacher } from "../../reconstruct/index.ts";
import type { Scored } from "../records/score-journal.ts";
import { type AskableTeacher, askTeacher, toTeacher } from "./ask-teacher.ts";
import { compareTokenizers } from "./compare-tokenizers.ts";

export type RolloutTeacherSetup = {
  teacher: AskableTeacher;
  /** Rollouts at once. */
  atOnce: number;
  /** Asks so many times about a rollout that gets no answer. */
  tries: number;
  /** Time limit of a rollout at the teacher: the wait in the line, and all tries. */
  seconds: number;
  /** Gets a sentence for each rollout that is not scored. */
  note: (text: string) => void;
  /** The time between two tries; by the clock where left out. Rejects when the signal fires. */
  pause?: (milliseconds: number, signal: AbortSignal) => Promise<void>;
};

/** Stands in the place of scores: all logprobs are null for `reason`. `why` is a sentence. */
type Unscored = { reason: TeacherReason; why: string };

export class RolloutTeacher {
  readonly #setup: RolloutTeacherSetup;
  readonly #line: Limiter;

  constructor(setup: RolloutTeacherSetup) {
    this.#setup = setup;
    this.#line = new Limiter(setup.atOnce);
  }

  /** The trajectory with its scores, or with nulls and their reason. Throws the reason of the signal alone. */
  async teach(trajectory: Trajectory, signal: AbortSignal): Promise<Trajectory> {
    const { teacher, note } = this.#setup;
    const { tokenizer, sampled_by } = compareTokenizers(teacher.tokenizer, trajectory);
    const other = { reason: "other_tokenizer", why: `it has another tokenizer than ${sampled_by ?? "the model"} that sampled it` } as const;
    const found = tokenizer === "other" ? other : await this.#scores(trajectory, tokenizer, signal);
    if ("scores" in found) return withTeacher(trajectory, found.teacher, found.scores);
    note(`${trajectory.task.id}/${trajectory.group.sample_index} has no logprobs of the teacher ${teacher.model}: ${found.why}`);
    return withTeacher(trajectory, toTeacher(teacher, tokenizer), unscoredNodes(trajectory, found.reason));
  }

  async #scores(trajectory: Trajectory, tokenizer: "same" | "unknown", stopped: AbortSignal): Promise<Scored | Unscored> {
    const { teacher, tries, seconds, pause = pauseByClock } = this.#setup;
    using late = new Deadline(seconds * 1000);
    const signal = AbortSignal.any([stopped, late.signal]);
    let last = "it had not begun";
    const ask = async (): Promise<Scored | Unscored> => {
      for (let made = 1; ; made++) {
        try {
          const scored = await askTeacher(teacher, tokenizer, trajectory, signal);
          return typeof scored === "string" ? { reason: "no_logprob", why: scored } : scored;
        } catch (error) {
          last = messageOf(error);
          signal.throwIfAborted();
          // The engine read the question, and would refuse it again.
          if (asAlidadeError(error, "engine_error").status < 429) return { reason: "refused", why: last };
          if (made === tries) return { reason: "not_answered", why: `${last} (asked ${tries} times)` };
        }
        await pause(firstPauseMs * 4 ** (made - 1), signal);
      }
    };
    try {
      return await this.#line.run(signal, ask);
    } catch {
      stopped.throwIfAborted();
      return { reason: "not_answered", why: `it took longer than ${seconds} s: ${last}` };
    }
  }
}

/** The pause grows four times with each try. An engine that restarts may need longer than all of them. */
const firstPauseMs = 1_000;

async function pauseByClock(milliseconds: number, signal: AbortSignal): Promise<void> {
  await sleep(milliseconds, undefined, { signal });
}
