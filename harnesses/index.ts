export { commandHarness } from "./command.ts";
export type { Harness, HarnessEnd, HarnessLaunch } from "./harness.ts";
export type { HarnessContext } from "./harness-context.ts";
export { ensureOwnPack } from "./own-pack.ts";
export { containerPlatform, ensurePack, hostPlatform, makeReadable, type Pack } from "./pack.ts";
export { pipInstall } from "./pip-install.ts";
export { harnesses, harnessFor, harnessNamed, harnessRegistry } from "./registry.ts";
export { usualVariables } from "./usual-variables.ts";
