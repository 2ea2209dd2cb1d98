export { readDrift, readTrainerLogprobs } from "./read-drift.ts";
export { renderSummary } from "./render.ts";
export { renderDrift } from "./render-drift.ts";
export { FidelitySummarizer } from "./summary.ts";
