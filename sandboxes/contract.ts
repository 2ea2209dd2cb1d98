/** What holds for every sandbox backend, tried on this machine: `alidade plugin check` and the contract tests run it. */
import { commandChecks } from "./contract/commands.ts";
import { doorChecks } from "./contract/doors.ts";
import { fileChecks } from "./contract/files.ts";
import type { SandboxCheck } from "./contract/in-sandbox.ts";
import { lifeChecks } from "./contract/life.ts";
import { serviceChecks } from "./contract/services.ts";

export type { SandboxContext } from "./contract/in-sandbox.ts";

export const sandboxContract: readonly SandboxCheck[] = [...lifeChecks, ...commandChecks, ...fileChecks, ...doorChecks, ...serviceChecks];
