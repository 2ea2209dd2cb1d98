/** What a grader's server is asked, and how its answer is read: one object for each kind of server. */

import type { GradeContext } from "../grader.ts";
import type { ToldComponents } from "../rules/told-reward.ts";

export const sendable = ["trajectory", "work"] as const;
export type Sendable = (typeof sendable)[number];

export type RemoteQuestion = Pick<GradeContext, "task" | "work" | "trajectory"> & {
  sends: readonly Sendable[];
  /** The task's own words to the server: what it expects, and the like. */
  data: Record<string, unknown>;
};

/** `reward`: null where the server could not measure, and `says` why. */
export type RemoteAnswer = { reward: number | null; components: ToldComponents; says: string | null };

export type RemoteForm = {
  readonly name: string;
  ask(question: RemoteQuestion): Promise<object>;
  /** Throws where the answer has not its form. */
  read(answer: unknown): RemoteAnswer;
};
