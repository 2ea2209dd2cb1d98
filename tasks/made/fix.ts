/** A change with tests that show it: what a task is made of. */
import type { TreeFile } from "../../base/files/file-tree.ts";

export type Fix = {
  task_id: string;
  /** The tree that the agent begins with. */
  base: TreeFile[];
  /** The test files that the change adds or changes, as they are after it. */
  tests: TreeFile[];
  /** A unified diff of the test files that it removes; "" where it removes none. */
  removed_tests: string;
  /** A unified diff of all else that it changes. */
  gold: string;
  /** What its authors say of it; names of tests are left out of what an agent reads. */
  message: string;
  /** What the agent is told, in the user's own words. Left out: it is made of the message. */
  instruction?: string;
  data_source: string;
  labels: Record<string, string>;
};

/** A change that may become a task. */
export type CandidateFix = {
  /** By which it is remembered: a commit's id, or two versions. */
  key: string;
  /** One line for people. */
  title: string;
  /** Throws NoTask where no task can be made of it. */
  fix(): Promise<Fix>;
};
