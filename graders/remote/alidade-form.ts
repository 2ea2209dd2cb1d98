/** Alidade's own HTTP: docs/graders.md has the fields of question and answer. */
import { readFile } from "node:fs/promises";
import { z } from "zod";
import { AlidadeError } from "../../base/errors.ts";
import type { WorkLayer } from "../../base/files/layer.ts";
import type { Trajectory } from "../../base/schema/trajectory.ts";
import { answerOf } from "../answer-of.ts";
import { ToldComponents } from "../rules/told-reward.ts";
import { workEvidence } from "../work/work.ts";
import type { RemoteForm, RemoteQuestion } from "./remote-form.ts";

/** Servers tell it apart from later forms. */
const formVersion = 1;

/** Servers may say more than is read here. */
const Answer = z.looseObject({ reward: z.number().nullable(), components: ToldComponents, reason: z.string().nullish() });

export const alidadeForm: RemoteForm = {
  name: "alidade",

  async ask(question) {
    const { task, trajectory, sends, data } = question;
    const { task_id, instruction, data_source, labels } = task;
    return {
      version: formVersion,
      task: { task_id, instruction, data_source, labels },
      data,
      rollout: trajectory ? rolloutOf(trajectory) : null,
      answer: trajectory ? answerOf(trajectory) : null,
      work: await workOf(question),
      ...(sends.includes("trajectory") && { trajectory: trajectory ?? null }),
    };
  },

  read(answer) {
    const { reward, components, reason } = Answer.parse(answer);
    return { reward, components, says: reason ?? null };
  },
};

function rolloutOf({ rollout_id, attempt, session_id }: Trajectory) {
  return { rollout_id, attempt, session_id };
}

async function workOf({ work, task, sends }: RemoteQuestion) {
  const { work_sha256, ...changes } = workEvidence(work, task);
  const about = { sha256: work_sha256, ...changes };
  return sends.includes("work") ? { ...about, tar_gz: await packed(work) } : about;
}

/** As base64, a third more. Held in memory once a grading; an answer with its question stays below what servers take. */
const mostWorkBytes = 32 * 1024 * 1024;

/** null: there is no change at all, and so no archive. Throws `output_too_large`: how much it leaves is the policy's choice. */
async function packed({ file, bytes }: WorkLayer): Promise<string | null> {
  if (file === "") return null;
  if (bytes > mostWorkBytes)
    throw new AlidadeError(
      "output_too_large",
      `the work has ${bytes} bytes packed, and a grader's server is sent ${mostWorkBytes} at most`,
    );
  return readFile(file, "base64");
}
