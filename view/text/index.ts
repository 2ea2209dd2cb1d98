export { table } from "./table.ts";
export { visibleText } from "./visible-text.ts";
