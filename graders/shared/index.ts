export { checkGrading, costOfSharing } from "./check-grading.ts";
export { lendSandbox } from "./lend-sandbox.ts";
export { isShared, keepsProcesses, withGrading } from "./place-to-grade.ts";
export { checkKept, standStill } from "./stand-still.ts";
