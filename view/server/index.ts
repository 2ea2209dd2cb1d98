export { openView } from "./open-view.ts";
