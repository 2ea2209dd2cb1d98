export { describeVerdict } from "./describe-verdict.ts";
export { renderHtml, type ShownWork } from "./render-html.ts";
export { renderText } from "./render-text.ts";
export { countedAttempts, type OnLeftOut, tellDamage, whyUnfinished } from "./run/counted-attempts.ts";
export { asOne, type Entry, membersOf, toEntries, toRollouts } from "./run/entries.ts";
export { type EntryTest, filters } from "./run/filters.ts";
export type { RunReader } from "./run/run-reader.ts";
export { type RunPlace, renderDiff, workDiff } from "./work-diff.ts";
