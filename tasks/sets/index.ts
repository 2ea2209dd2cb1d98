export { imageSources } from "../task-format.ts";
export { isSome, noneLeft } from "./none-left.ts";
export { type PassCount, type PassCounts, PassRange, rateOf, sumOfCounts, takeByPassRate } from "./pass-rate.ts";
export { type EarlierRuns, TaskChoice } from "./select-tasks.ts";
