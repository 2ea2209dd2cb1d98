export { acceptedTasks, isTheUsers, type OnTaskLeftOut } from "./accepted-tasks.ts";
export { assertDistinct } from "./assert-distinct.ts";
export { LeftOutTasks } from "./left-out-tasks.ts";
export { noteLeftOut } from "./note-left-out.ts";
export { checkPublicNetwork, publicGrantOf } from "./public-network.ts";
export { assertForkable, assertTakesTask, assertUserServed, type TakingHarness } from "./takes-task.ts";
