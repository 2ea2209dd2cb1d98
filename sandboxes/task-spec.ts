/** The sandbox of a task's environment; agent and grader get the same one. */

import { isBelow } from "../base/files/file-tree.ts";
import { Environment, type Limits } from "../base/schema/task.ts";
import type { Sandbox, SandboxSpec } from "./sandbox.ts";

export function specOf(
  task: { environment: Environment; limits: Limits },
  { run_id, owner }: Pick<SandboxSpec, "run_id" | "owner">,
  more: { mounts?: Record<string, string>; env?: Record<string, string> } = {},
): SandboxSpec {
  return {
    run_id,
    owner,
    image: task.environment.image,
    build: task.environment.build,
    workdir: task.environment.workdir,
    user: task.environment.user,
    writable: task.environment.writable,
    healthcheck: task.environment.healthcheck,
    inotify: task.environment.inotify,
    platform: task.environment.platform,
    ...(task.environment.services && { services: task.environment.services }),
    ...(task.environment.display && { display: task.environment.display }),
    mounts: { ...task.environment.mounts, ...more.mounts },
    env: { ...task.environment.env, ...more.env },
    limits: task.limits,
  };
}

/** The environment, and one for the image of each service beside it: all that is pulled or built for it. */
export function withServices(environment: Environment): Environment[] {
  const services = Object.values(environment.services ?? {});
  return [environment, ...services.map(({ image, build }) => Environment.parse({ image, build, workdir: "/", writable: "root" }))];
}

/**
 * The environment's variables as commands inside must see them: where the sandbox keeps a mount or the workdir at
 * another path (the process sandbox), the entries of path lists that begin with it are rewritten.
 */
export function envInside(environment: Environment, sandbox: Sandbox): Record<string, string> {
  const places = [environment.workdir, ...Object.keys(environment.mounts)].sort((a, b) => b.length - a.length);
  const inside = (entry: string) => {
    const place = places.find((candidate) => isBelow(entry, candidate));
    return place === undefined ? entry : sandbox.path(place) + entry.slice(place.length);
  };
  return Object.fromEntries(Object.entries(environment.env).map(([name, value]) => [name, value.split(":").map(inside).join(":")]));
}
