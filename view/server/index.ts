export type { TextEngine } from "../tokens/asked-texts.ts";
export type { TextSources } from "../tokens/vocabulary.ts";
export { PageMaker } from "./make-pages.ts";
export { openView } from "./open-view.ts";
export { RunEvents } from "./run-events.ts";
export { answerBelow, assetAnswer, failure, pageAnswer, viewApp } from "./view-app.ts";
export { writeStatic } from "./write-static.ts";
