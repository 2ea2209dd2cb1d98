export { checksVersion } from "./checks-version.ts";
export { type Examination, type ExaminationOptions, examineTask } from "./examine-task.ts";
export { baselineOf, leaksInWords, reasonsAgainst } from "./reasons-against.ts";
