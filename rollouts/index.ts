export { type AttemptEnd, type AttemptTally, described, type Tally, tallyOf } from "./attempt-tally.ts";
export { fitMachine, fitOneByOne } from "./fit-machine.ts";
export { lockFolder } from "./folder-lock.ts";
export { attemptKey, eachAttempt, eachTrajectory, RunFolder, readRollouts, readTrajectories } from "./run-folder.ts";
export type { ProgressEvent } from "./run-setup.ts";
export { type RunOptions, runTasks } from "./run-tasks.ts";
