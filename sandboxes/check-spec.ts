/** Checks that every backend makes of a sandbox's specification. */
import { posix } from "node:path";
import { AlidadeError } from "../base/errors.ts";
import type { NetworkAccess } from "../base/schema/network.ts";
import type { Environment, Limits } from "../base/schema/task.ts";
import type { Capabilities, SandboxSpec } from "./sandbox.ts";

/** The time of a whole rollout, and a day for queues and pauses that no budget counts. */
const leaseSlackMs = 24 * 3600_000;

/** Milliseconds since 1970 after which no rollout can be using the sandbox any more. */
export function leaseDeadline(limits: Limits): number {
  return Date.now() + (limits.init_seconds + limits.agent_seconds + limits.grade_seconds) * 1000 + leaseSlackMs;
}

/** Throws `config_invalid` for paths that no sandbox can have. Where everything is writable the workdir may be `/`. */
export function checkSpec(spec: SandboxSpec): void {
  for (const [field, path] of [["workdir", spec.workdir], ...Object.keys(spec.mounts).map((key) => ["mounts", key])] as [
    string,
    string,
  ][]) {
    if (field === "workdir" && path === "/" && spec.writable === "root") continue;
    if (!posix.isAbsolute(path) || posix.normalize(path) !== path || path === "/" || path.endsWith("/") || path.includes("\0")) {
      throw new AlidadeError("config_invalid", `The sandbox's ${field} "${path}" must be an absolute, normal path other than "/".`, {
        param: field,
      });
    }
  }
}

/** Throws `task_invalid` for what no sandbox of this backend can be. */
export function checkEnvironments(environments: Environment[], title: string, can: Capabilities): void {
  const { users, images, builds, network } = can;
  for (const environment of environments) {
    const { user, platform, build, image, writable, services } = environment;
    for (const { field, access } of networksOf(environment))
      if (access !== "none" && network !== "none")
        throw impossible(field, shown(access), `sandboxes in ${title} reach all that this machine reaches`);
    if (!users.includes(user)) throw impossible("user", user, `sandboxes in ${title} have the user ${users.join(" or ")}`);
    if (platform !== null && !images) throw impossible("platform", platform, `sandboxes in ${title} are made from no image`);
    if (image !== null && writable === "root" && !images)
      throw impossible("writable", writable, `sandboxes in ${title} have the files of this machine and none of the image`);
    if (services && !can.services)
      throw impossible("services", Object.keys(services).join(", "), `sandboxes in ${title} have no containers beside them`);
    if (build !== null && !images) throw impossible("build", JSON.stringify(build), `sandboxes in ${title} are made from no image`);
    if (build !== null && !builds) throw impossible("build", JSON.stringify(build), `no image is built for sandboxes in ${title}`);
  }
}

type NetworkField = { field: string; access: NetworkAccess };

/** What a task asks of the network, with the fields that say it. */
export function networksOf({ network, setup, grading_network }: Environment): NetworkField[] {
  const always = [
    { field: "network", access: network },
    { field: "grading_network", access: grading_network },
  ];
  return setup === null ? always : [...always, { field: "setup.network", access: setup.network }];
}

export function usesNetwork(environment: Environment): boolean {
  return networksOf(environment).some(({ access }) => access !== "none");
}

function shown(access: NetworkAccess): string {
  return access === "none" || access === "public" ? access : `{ allow: [${access.allow.join(", ")}] }`;
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
