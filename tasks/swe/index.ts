export { fromJsonText } from "./columns.ts";
export { oneCommit } from "./one-commit.ts";
export { quoted, shell } from "./published-task.ts";
export { sweBench } from "./swe-bench.ts";
