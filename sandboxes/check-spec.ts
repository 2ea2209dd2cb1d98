/** Checks that every backend makes of a sandbox's specification. */
import { posix } from "node:path";
import { AlidadeError } from "../errors.ts";
import type { Limits } from "../schema/task.ts";
import type { SandboxSpec } from "./sandbox.ts";

/** The time of a whole rollout, and a day for queues and pauses that no budget counts. */
const leaseSlackMs = 24 * 3600_000;

/** Milliseconds since 1970 after which no rollout can be using the sandbox any more. */
export function leaseDeadline(limits: Limits): number {
  return Date.now() + (limits.init_seconds + limits.agent_seconds + limits.grade_seconds) * 1000 + leaseSlackMs;
}

/** Throws `config_invalid` for paths that no sandbox can have. */
export function checkSpec(spec: SandboxSpec): void {
  for (const [field, path] of [["workdir", spec.workdir], ...Object.keys(spec.mounts).map((key) => ["mounts", key])] as [
    string,
    string,
  ][]) {
    if (!posix.isAbsolute(path) || posix.normalize(path) !== path || path === "/" || path.endsWith("/") || path.includes("\0")) {
      throw new AlidadeError("config_invalid", `The sandbox's ${field} "${path}" must be an absolute, normal path other than "/".`, {
        param: field,
      });
    }
  }
}
