export { startPracticeEngine } from "./start.ts";
