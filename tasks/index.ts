export { inlineTask, toInline } from "./inline-task.ts";
export { loadTaskSets, loadTasks } from "./load-tasks.ts";
export { taskFormatRegistry, taskFormats } from "./registry.ts";
export { chosenTasks, selectTasks } from "./sets/select-tasks.ts";
export { contentHash, type HashedTask, hashedTasks, type TaskSet, taskSetOf } from "./sets/task-set.ts";
export type { LoadOptions, TaskFormat } from "./task-format.ts";
