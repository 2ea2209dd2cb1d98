export type { AskableTeacher } from "./ask-teacher.ts";
export { RolloutTeacher } from "./rollout-teacher.ts";
export { type ScoredRollout, type Scoring, score } from "./score.ts";
