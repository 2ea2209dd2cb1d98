/**
 * The teacher of a run or of a node: it scores each rollout that has been graded, before its trajectory is kept. A teacher that
 * does not answer costs a rollout its scores and a bounded time, and nothing else.
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
  /** How often it is asked about a rollout that it does not answer. */
  tries: number;
  /** How long a rollout waits for it, its place in the line and all tries included. */
  seconds: number;
  /** Gets a sentence for each rollout that is not scored. */
  note: (text: string) => void;
  /** The time between two tries; by the clock where left out. Rejects when the signal fires. */
  pause?: (milliseconds: number, signal: AbortSignal) => Promise<void>;
};

/** Null logprobs for the reason, in the place of scores. `why`: a sentence. */
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
    const why = `it has another tokenizer than ${sampled_by ?? "the model"} that sampled it`;
    const found = tokenizer === "other" ? otherTokenizer(why) : await this.#scores(trajectory, tokenizer, signal);
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

/** An engine that restarts needs longer; then the time of the rollout bounds the tries. */
const firstPauseMs = 1_000;

async function pauseByClock(milliseconds: number, signal: AbortSignal): Promise<void> {
  await sleep(milliseconds, undefined, { signal });
}

function otherTokenizer(why: string): Unscored {
  return { reason: "other_tokenizer", why };
}
