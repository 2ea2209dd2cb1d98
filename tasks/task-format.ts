/** A form in which people keep tasks. A loader reads it into our Task; what it reads is untrusted. */
import type { AlidadeError } from "../base/errors.ts";
import type { NetworkAccess } from "../base/schema/network.ts";
import type { Task } from "../base/schema/task.ts";
import type { RewardRule } from "../graders/harbor/index.ts";
import type { Grader } from "../graders/index.ts";

export const imageSources = ["pull", "build"] as const;

export type LoadOptions = {
  /** Those that a task may name; the built-in ones where left out. */
  graders?: readonly Grader[];
  /** The forms that are known, in the order in which they are asked; the built-in ones where left out. */
  formats?: readonly TaskFormat[];
  /** Variables of the host that tasks may read, by their names; none where left out. */
  env?: Readonly<Record<string, string>>;
  /** The operator allows the public network: agents of a format whose default it is get it. */
  allowPublic?: boolean;
  /** What tests of tasks of Harbor and of Terminal-Bench reach, where the task does not say so; nothing where left out. */
  verifierNetwork?: NetworkAccess | null;
  /** Reads the task's own files alone. It pulls and fetches nothing, so it does not check images and packages. */
  static?: boolean;
  /** Where images come from: `build`, by the recipe in a row or the Dockerfile beside a task. Left out: they are pulled. */
  images?: (typeof imageSources)[number];
  /** Folder with bare clones (`owner/name.git`) that recipes build from; what is not there comes from https://github.com. */
  repositories?: string | null;
  /** Which number of a Harbor verifier is the reward, where the task does not say so. */
  harborReward?: RewardRule | null;
  /** Only these tasks are prepared (sources fetched, dependencies installed); all of them when absent. */
  only?: ReadonlySet<string>;
  /**
   * Gets the error of each task that cannot be loaded, and the others are loaded. Where left out the first such error is
   * thrown.
   */
  onLeftOut?: (error: AlidadeError) => void;
  signal?: AbortSignal;
  /** One line for people about something slow. */
  progress?: (line: string) => void;
};

/** The flags that would give tasks, which say nothing of a network, one; null: all are given. */
export function networkFlags({ allowPublic, verifierNetwork }: Pick<LoadOptions, "allowPublic" | "verifierNetwork">): string | null {
  const flags = [
    ...(allowPublic ? [] : ["--allow-public-network for the agent"]),
    ...(verifierNetwork ? [] : ["--verifier-network for the tests"]),
  ];
  return flags.length === 0 ? null : flags.join(", and ");
}

export interface TaskFormat {
  readonly name: string;
  readonly title: string;
  /** Does this format claim the path? Looks at names and at the beginning of a file, and runs nothing. */
  matches(path: string): Promise<boolean>;
  /** Errors are `task_invalid` and name file and field. `loadEach` gives them to `onLeftOut`. */
  load(path: string, options: LoadOptions): Promise<Task[]>;
}
