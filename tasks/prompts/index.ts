export { promptFormats } from "./prompt-formats.ts";
export { factsOf } from "./prompt-row.ts";
