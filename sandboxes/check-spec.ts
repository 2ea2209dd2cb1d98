/** Checks that every backend makes of a sandbox's specification. */
import { posix } from "node:path";
import { AlidadeError } from "../errors.ts";
import type { Environment, Limits } from "../schema/task.ts";
import type { Capabilities, SandboxSpec } from "./sandbox.ts";

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

/** Throws `task_invalid` for what no sandbox of this backend can be. */
export function checkEnvironments(environments: Environment[], title: string, { users, images }: Capabilities): void {
  for (const { user, platform, build } of environments) {
    if (!users.includes(user)) throw impossible("user", user, `sandboxes in ${title} have the user ${users.join(" or ")}`);
    if (platform !== null && !images) throw impossible("platform", platform, `sandboxes in ${title} are made from no image`);
    if (build !== null && !images) throw impossible("build", JSON.stringify(build), `sandboxes in ${title} are made from no image`);
  }
}

function impossible(field: string, value: string, why: string): AlidadeError {
  return new AlidadeError(
    "task_invalid",
    `environment.${field} is ${value}, and ${why}: use another backend (--sandbox) or change the task.`,
    {
      param: `environment.${field}`,
    },
  );
}
