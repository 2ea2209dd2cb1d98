/**
 * Alidade as a library: everything that the command line does, in the same words.
 *
 *     import * as alidade from 'alidade';
 *
 *     const engine = alidade.engineNamed("vllm").create({ baseUrl: "http://127.0.0.1:8000", apiKey: null });
 *     await using proxy = await alidade.HarnessProxy.start({ engine, store: new alidade.DiskStore("sessions"), version: "mine" });
 *     const { session, key } = await proxy.openSession({ purpose: "train" });
 *     // Point a harness at it: OPENAI_BASE_URL=`${proxy.url}/v1`, OPENAI_API_KEY=key. Then:
 *     await session.seal("done");
 *     const trajectory = await proxy.trajectory(session.id);
 *
 * What is listed here is public and keeps its meaning within a minor version; everything else may move.
 */

// Start a proxy and open sessions -------------------------------------------------------------------------------------

/** The API shapes that harnesses may speak. */
export { dialects } from "./proxy/dialects/index.ts";
/** The proxy with its sessions and control listener, and the sampling that it forces on training calls. */
export { HarnessProxy, neutralSampling, type ProxyOptions, type Session } from "./proxy/index.ts";

// Engines: the inference servers behind it ----------------------------------------------------------------------------

/** The kinds of servers; `create` connects to one. */
export {
  type Engine,
  type EngineFacts,
  type EngineKind,
  engineNamed,
  engines,
  type SampleEvent,
  type SampleRequest,
} from "./engines/index.ts";
/** The embedded engine: random weights, real sampling, true logprobs, for demos and tests. */
export { startPracticeEngine } from "./practice/index.ts";

// Stores: where session logs live -------------------------------------------------------------------------------------

export { DiskStore, MemoryStore, type SessionLog, type Store } from "./proxy/store/index.ts";

// Run tasks -----------------------------------------------------------------------------------------------------------

export type { Reaped } from "./base/host/reap.ts";
export type { GradeContext, Grader, GraderSampler } from "./graders/index.ts";
/** Does a task grade its gold patch 1 and no change 0? */
export { checkTask, graders } from "./graders/index.ts";
export type { Harness, HarnessContext, HarnessEnd, HarnessLaunch } from "./harnesses/index.ts";
/** Agent harnesses: those that are installed, and one's own command. */
export { commandHarness, harnesses, harnessNamed } from "./harnesses/index.ts";
/** A rollout once more from its record: to the end, to a turn, or on from there (docs/replay.md). */
export { type SessionRecording, toRecording, turnsToForkAt } from "./proxy/index.ts";
/** A policy of one's own for the samples of a set (docs/service.md). */
export type { BranchingPolicy, ForkPlace, TreeSoFar } from "./rollouts/branching/index.ts";
/** Submit a rollout and get its outcome; a batch of them, tasks in and trajectories out; and what a run leaves behind. */
export {
  type Batch,
  eachTrajectory,
  makeSlots,
  type ProgressEvent,
  type ReplayOrder,
  type RolloutOutcome,
  type RolloutPlan,
  type Rollouts,
  RunFolder,
  type RunSetup,
  readRollouts,
  readTrajectories,
  rolloutsOn,
  runTasks,
  toReplayPlans,
} from "./rollouts/index.ts";
export type { Sandbox, SandboxBackend, SandboxSpec } from "./sandboxes/index.ts";
/** Where they run. */
export { backends, folderArchive, folderContent, pickBackend, reapAll } from "./sandboxes/index.ts";
/** Rollouts from `alidade service`: submitted, taken by cursor, through restarts and weight updates. */
export {
  type AskedTask,
  type ClientOptions,
  type Delivered,
  type DeliveredGroup,
  type DeliveredResult,
  type DeliveryOptions,
  type FromCursor,
  RolloutSet,
  ServiceClient,
  type WeightUpdate,
} from "./service/client/index.ts";
export type { AllocationPolicy, GroupSoFar } from "./service/ledger/index.ts";
export type { TaskFormat } from "./tasks/index.ts";
/** Tasks of any known format, ready to run. */
export { loadTasks, taskFormats } from "./tasks/index.ts";

// From a session's log to a trainer -----------------------------------------------------------------------------------

/** Trajectories -> files in trainers' own forms. */
export {
  type Exporter,
  type ExporterPlugIn,
  type ExportOptions,
  type ExportReport,
  exporterNamed,
  exporters,
  exportTrajectories,
} from "./exporters/index.ts";
/** Session log -> token tree -> rows, what they weigh and earn, and the proof of it against recorded exchanges. */
export {
  type AdvantageMethod,
  type Aggregation,
  type BaselineEntry,
  componentsOfRow,
  type EngineExchange,
  FlatRow,
  FlatSegment,
  type GroupAdvantages,
  groupAdvantages,
  joinMembers,
  type Mismatch,
  reconstruct,
  type SelectedRows,
  type SelectOptions,
  selectionNamed,
  selections,
  selectRows,
  type TokenAccount,
  TokenPaths,
  type TrajectoryFacts,
  type Verification,
  verifyRows,
  verifyTrajectory,
  weightedTotal,
} from "./reconstruct/index.ts";

// Configuration -------------------------------------------------------------------------------------------------------

/** The run file's schema, and how file, environment and overrides come together. */
export { Config, configSchema, loadConfig } from "./cli/index.ts";

// Records: zod schemas, and types of the same names -------------------------------------------------------------------

export { Message, Sampling, Tool, ToolChoice, Usage } from "./base/schema/message.ts";
export { Policy } from "./base/schema/policy.ts";
export { RewardComponent } from "./base/schema/reward-component.ts";
export { RolloutRecord, Verdict } from "./base/schema/rollout.ts";
export { LogEntry, logSchemaVersion } from "./base/schema/session-log.ts";
export { Budgets, NewSession, Purpose, SessionSpec } from "./base/schema/session-spec.ts";
export { Environment, GraderSpec, Limits, Task } from "./base/schema/task.ts";
export { type Attempt, CallRecord, Fidelity, Trace, Trajectory, TreeNode, trajectorySchemaVersion } from "./base/schema/trajectory.ts";

// Errors --------------------------------------------------------------------------------------------------------------

/** Every failure has a code of this list; the code tells which side failed. */
export { AlidadeError, type ErrorCode, type ErrorOwner, errorCodes } from "./base/errors.ts";

export { version } from "./base/version.ts";
