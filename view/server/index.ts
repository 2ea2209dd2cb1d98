export { openView } from "./open-view.ts";
export { writeStatic } from "./write-static.ts";
