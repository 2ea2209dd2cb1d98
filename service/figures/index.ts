export { attemptFigures } from "./attempt-figures.ts";
export { type Evaluation, EvaluationTally, KeptEvaluation } from "./evaluation-tally.ts";
export { type Figure, type StepFigures, stepFigures } from "./step-figures.ts";
export { KeptSteps, newestOf, StepTallies } from "./step-tallies.ts";
export { passReward, type ResultTally, type TalliedRow } from "./tally.ts";
