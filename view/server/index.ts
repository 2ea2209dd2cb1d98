export type { TextEngine } from "../tokens/asked-texts.ts";
export { PageMaker } from "./make-pages.ts";
export { openView, type ViewOrder } from "./open-view.ts";
export { RunEvents } from "./run-events.ts";
export { answerBelow, assetAnswer, failure, pageAnswer, viewApp } from "./view-app.ts";
export { type StaticOrder, writeStatic } from "./write-static.ts";
