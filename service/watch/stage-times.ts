/** When the stages of an attempt began and ended. Unix milliseconds. */
import type { EndedAttempt } from "../../base/schema/watcher.ts";

/** `isCut`: the attempt ended in it. */
export type StageTime = { name: "queue" | "init" | "run" | "grade" | "teach" | "store"; start: number; end: number; isCut: boolean };

/** Each stage with its start time and its possible end times; the first end on record counts. A stage that never began is left out. */
const stages = [
  ["queue", "queued", ["init"]],
  ["init", "init", ["ready"]],
  ["run", "run", ["ran"]],
  ["grade", "post", ["teach", "done"]],
  ["teach", "teach", ["done"]],
] as const;

export function stageTimes({ record: { times }, stored }: EndedAttempt): StageTime[] {
  const { done = stored } = times;
  const begun = stages.flatMap(([name, from, to]): StageTime[] => {
    const start = times[from];
    const end = to.map((each) => times[each]).find((time) => time !== undefined);
    return start === undefined ? [] : [{ name, start, end: end ?? done, isCut: end === undefined }];
  });
  return [...begun, { name: "store", start: done, end: stored, isCut: false }];
}
