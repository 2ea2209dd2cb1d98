export { exists } from "./host-path.ts";
export { inlineTask, toInline } from "./inline-task.ts";
export { loadTaskSets, loadTasks } from "./load-tasks.ts";
export { taskFormatRegistry, taskFormats } from "./registry.ts";
export { isSome, noneLeft } from "./sets/none-left.ts";
export { type PassCount, type PassCounts, PassRange, rateOf, sumOfCounts, takeByPassRate } from "./sets/pass-rate.ts";
export { chosenTasks, type EarlierRuns, selectTasks, TaskChoice } from "./sets/select-tasks.ts";
export { contentHash, type HashedTask, hashedTasks, type TaskSet, taskSetOf } from "./sets/task-set.ts";
export { imageSources, type LoadOptions, type TaskFormat } from "./task-format.ts";
