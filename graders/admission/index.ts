export { checksVersion } from "./checks-version.ts";
export { type Examination, type ExaminationOptions, examineTask } from "./examine-task.ts";
export { leaksInWords } from "./reasons-against.ts";
