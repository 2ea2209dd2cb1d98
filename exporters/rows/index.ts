export { callsOfRow, inputOf, outputOf, toolsOf } from "./row-calls.ts";
