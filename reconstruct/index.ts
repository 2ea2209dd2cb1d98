/** Session log -> token tree -> rows; pure functions, no I/O. */
export { type Aligned, fullLength, perToken, responseOnly, shifted, type Turn, turnsOf } from "./alignment-families.ts";
export { type Audit, type AuditOptions, auditTrajectory, type CallAudit, defaultTolerance, type Score } from "./audit.ts";
export { FlatRow, FlatSegment } from "./flat-row.ts";
export { imagesOf } from "./images-of.ts";
export { joinMembers } from "./join-members.ts";
export {
  type CutOffRule,
  type CutOffRules,
  cutOffCause,
  isUnmeasured,
  type LossRules,
  parseCutOffRules,
  type Standing,
  type StandingRules,
  standingOf,
  underRules,
} from "./loss-rules.ts";
export { reconstruct, type TrajectoryFacts } from "./reconstruct.ts";
export {
  type AdvantageMethod,
  advantageMethods,
  type GroupAdvantages,
  type GroupMember,
  groupAdvantages,
} from "./rewards/advantages.ts";
export { type Aggregation, aggregations, rowWeight } from "./rewards/row-weight.ts";
export { type PlacedValue, valuesOfRow, weightedTotal } from "./rewards/values.ts";
export { defaultSelectOptions, dummyRow, type SelectedRows, type SelectOptions, selectRows } from "./select-rows.ts";
export { selectionNamed, selections } from "./selection/index.ts";
export type { Selection } from "./selection/selection.ts";
export { addAccounts, rowInflationOf, type TokenAccount } from "./token-account.ts";
export { TokenPaths } from "./token-paths.ts";
export { exclusionOfCall } from "./trainable.ts";
export { untrainedByAgent } from "./untrained-by-agent.ts";
export { type Exchange, type Mismatch, type Verification, verifyRows, verifyTrajectory } from "./verify.ts";
