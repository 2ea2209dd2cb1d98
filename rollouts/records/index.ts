export { type AttemptCause, attemptFidelityOf, type CauseExample } from "./attempt-fidelity.ts";
export { lockFolder } from "./folder-lock.ts";
export {
  type IndexFile,
  indexedFiles,
  type LooseSession,
  type PhaseSeconds,
  phaseNames,
  type RecordFigures,
  type TrajectoryFigures,
  type VerdictFigures,
} from "./index-file.ts";
export { between, phaseSeconds } from "./phase-seconds.ts";
export { describedResumes, type ResumeTally, resumeTally } from "./resume-tally.ts";
export { openIndex, refreshIndex } from "./run-index.ts";
export { attemptKey, eachAttempt, eachTrajectory, lastByTask, readRollouts } from "./run-records.ts";
export { tellsOfSession } from "./update-index.ts";
