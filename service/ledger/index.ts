export { lagAt } from "./admission.ts";
export type { AllocationPolicy, GroupSoFar } from "./allocation/allocation-policy.ts";
export { allocationContract } from "./allocation/contract.ts";
export { Allocations, allocationPolicies, allocationRegistry } from "./allocation/index.ts";
export {
  ControlState,
  type FenceOrder,
  type HeardNode,
  NodeAnswer,
  type NodeQuestion,
  ordersOf,
  type PolicyName,
} from "./control-state.ts";
export { assertAsStrict, type Demands, strictest } from "./demands.ts";
export type { EnginePlaces, EngineUse } from "./engine-places.ts";
export type { Gaps, Removal, Superseded } from "./expiry.ts";
export { biasesOf, enoughStand, forkRound, noPlaceToFork, parks, partGroup, placesOf } from "./group-tools.ts";
export {
  type AttemptName,
  beatSeconds,
  type CancelOrder,
  type Claim,
  type ClaimedSets,
  elsewhereSeconds,
  type KeptPlace,
  type Lease,
  type Ledger,
  leaseSeconds,
  mostLost,
  mostLostInAll,
  type NodeState,
  type ParkedEnd,
  type SetState,
  type WholeGroup,
} from "./ledger.ts";
export { PostgresLedger } from "./postgres/postgres-ledger.ts";
export {
  AttemptFigures,
  AttemptResult,
  EngineSpans,
  GroupPart,
  type GroupVersions,
  mostEngineSpans,
  type OnStale,
  ResultRow,
  SetSpec,
} from "./records.ts";
export { conflicting, refusals } from "./refusals.ts";
export { nothingMeasured, setAside, shortError } from "./result-row.ts";
export { SqliteLedger } from "./sqlite/sqlite-ledger.ts";
export { watchMeanwhile, watchNodes } from "./watch-nodes.ts";
