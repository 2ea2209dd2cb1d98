export { argumentBatches } from "./argument-batches.ts";
export { networksOf, usesNetwork } from "./check-spec.ts";
export { DesktopWatch } from "./desktop/desktop-watch.ts";
export { displayClash } from "./desktop/display-clash.ts";
export { withDisplay } from "./desktop/with-display.ts";
export { DiskBudget } from "./disk-budget.ts";
export { imageStart } from "./docker/images/environment-image.ts";
export { readContext } from "./docker/images/made/build-context.ts";
export { type LastStage, lastStageOf } from "./docker/images/made/dockerfile.ts";
export { examineMachine } from "./examine-machine.ts";
export { folderArchive, folderContent } from "./folder-archive.ts";
export type { PreparedImage, StoredImage } from "./image-store.ts";
export { nodeInside, nodeMount } from "./node-mount.ts";
export { backendNames, backendRegistry, backends, pickBackend, reapAll } from "./registry.ts";
export type {
  AfterFreeze,
  Door,
  ExecOptions,
  ExecResult,
  ImageStore,
  PrepareOptions,
  Room,
  Sandbox,
  SandboxBackend,
  SandboxFacts,
  SandboxSpec,
} from "./sandbox.ts";
export { allCapabilities } from "./sandbox.ts";
export { beginStep, conceal, setUp } from "./set-up.ts";
export { envInside, specOf, withServices } from "./task-spec.ts";
export { type ExpectedSandbox, WarmPool } from "./warm-pool.ts";
