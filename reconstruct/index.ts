/** Session log -> token tree -> flat rows; pure functions, no I/O. */
export { FlatRow, FlatSegment } from "./flat-row.ts";
export { type FlatRows, type FlattenOptions, flatten, flattenLazily } from "./flatten.ts";
export { reconstruct, type TrajectoryFacts } from "./reconstruct.ts";
export { TokenPaths } from "./token-paths.ts";
export { exclusionOfCall } from "./trainable.ts";
export { type Exchange, type Mismatch, type Verification, verifyRows, verifyTrajectory } from "./verify.ts";
