/** A change that may become a task. */
import type { Fix } from "./fix.ts";

export type CandidateFix = {
  /** By which it is remembered: a commit's id, or two versions. */
  key: string;
  /** One line for people. */
  title: string;
  /** Throws NoTask where no task can be made of it. */
  fix(): Promise<Fix>;
};
