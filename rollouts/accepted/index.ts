export { acceptedTasks, isTheUsers, type OnTaskLeftOut } from "./accepted-tasks.ts";
export { LeftOutTasks } from "./left-out-tasks.ts";
export { checkPublicNetwork, publicGrantOf } from "./public-network.ts";
export { assertTakesTools } from "./takes-tools.ts";
