/** When the stages of an attempt began and ended. Unix milliseconds. */
import type { EndedAttempt } from "../../base/schema/watcher.ts";

/** `isCut`: the attempt ended in it. */
export type StageTime = { name: "queue" | "init" | "run" | "grade" | "store"; start: number; end: number; isCut: boolean };

/** Each stage with the times at which it begins and ends; one that was never begun is left out. */
const stages = [
  ["queue", "queued", "init"],
  ["init", "init", "ready"],
  ["run", "run", "ran"],
  ["grade", "post", "done"],
] as const;

export function stageTimes({ record: { times }, stored }: EndedAttempt): StageTime[] {
  const { done = stored } = times;
  const begun = stages.flatMap(([name, from, to]): StageTime[] => {
    const start = times[from];
    return start === undefined ? [] : [{ name, start, end: times[to] ?? done, isCut: times[to] === undefined }];
  });
  return [...begun, { name: "store", start: done, end: stored, isCut: false }];
}
