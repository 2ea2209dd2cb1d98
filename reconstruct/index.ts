/** Session log -> token tree -> rows; pure functions, no I/O. */

export { type Audit, auditTrajectory, defaultTolerance } from "./audit.ts";
export { countBy } from "./count-by.ts";
export { type AttributedDrift, attributeDrift } from "./drift/attribute-drift.ts";
export { driftOf } from "./drift/call-drift.ts";
export { Drift, type DriftSummary } from "./drift/drift.ts";
export { GivenLogprobs } from "./drift/given-logprobs.ts";
export { type ToldTokens, toldTokens } from "./drift/told-tokens.ts";
export { TrainerLogprobs } from "./drift/trainer-logprobs.ts";
export { joinMembers } from "./join-members.ts";
export { addOmitted, describeOmitted } from "./omitted.ts";
export { reconstruct, reconstruction, type TrajectoryFacts } from "./reconstruct.ts";
export { type AdvantageMethod, advantageMethods, type BaselineEntry, type GroupAdvantages, groupAdvantages } from "./rewards/advantages.ts";
export { componentsOfRow, weightedTotal } from "./rewards/reward-components.ts";
export { type Aggregation, aggregations } from "./rewards/row-weight.ts";
export { type Credit, type CreditLeaf, credits, treeCredit } from "./rewards/tree-credit.ts";
export { type RoutingFidelity, routingFidelityOf } from "./routing-fidelity.ts";
export {
  fullLength,
  perToken,
  type RowTurn,
  responseOnly,
  shifted,
  teacherLogprobs,
  teacherTop,
  turnsOf,
} from "./rows/alignment-families.ts";
export { FlatRow, FlatSegment, RowSupport } from "./rows/flat-row.ts";
export { imagesOf } from "./rows/images-of.ts";
export { isRouted } from "./rows/place-routing.ts";
export { defaultSelectOptions, dummyRow, type SelectedRows, type SelectOptions, selectRows } from "./rows/select-rows.ts";
export { addAccounts, rowInflationOf, type TokenAccount, tokensOutside } from "./rows/token-account.ts";
export { selectionNamed, selections } from "./selection/index.ts";
export { noSupport, type SupportFidelity, supportFidelityOf } from "./support-fidelity.ts";
export { type AskTeacher, scoreNodes, unscoredNodes, withTeacher } from "./teacher/score-nodes.ts";
export { type Teaching, teachingOf, wasAnswered } from "./teacher/teaching.ts";
export { lossOf } from "./trained/loss-of.ts";
export { parseCutOffRules, type StandingRules, standingOf, underRules } from "./trained/loss-rules.ts";
export { ownTokens } from "./trained/own-tokens.ts";
export { untrainedByAgent } from "./trained/untrained-by-agent.ts";
export { defaultTrainer, type Judge, judgedNodes, recordedReasonOf, toJudge, whyTurnUntrained } from "./trained/why-untrained.ts";
export type { Score } from "./tree/covering-paths.ts";
export { isCleared } from "./tree/is-cleared.ts";
export { withoutExperts } from "./tree/routing-blobs.ts";
export { TokenPaths } from "./tree/token-paths.ts";
export { type EngineExchange, type Mismatch, type Verification, verifyRows, verifyTrajectory } from "./verify.ts";
