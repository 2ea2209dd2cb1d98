/** What a sandbox may take of the machine at most, with the services beside it. */
import type { Services } from "../base/schema/environment/services.ts";
import type { Limits } from "../base/schema/task.ts";
import type { Room } from "./sandbox.ts";

/** Memory of the container that holds the namespace of services apart. The forwarder runs there in Node, and takes half of it. */
export const namespaceMegabytes = 128;

/** `isNear`: this machine enters the network namespaces of containers, so a lone service apart needs no container beside it. */
export function takesWithServices({ memory_mb, disk_mb }: Limits, services: Services = {}, isNear = false): Room & { memory_mb: number } {
  const apart = Object.values(services).filter(({ network }) => network === "apart").length;
  const namespace = apart > (isNear ? 1 : 0) ? [{ memory_mb: namespaceMegabytes, disk_mb: 0 }] : [];
  const all = [{ memory_mb, disk_mb }, ...Object.values(services), ...namespace];
  return { memory_mb: all.reduce((sum, one) => sum + one.memory_mb, 0), disk_mb: all.reduce((sum, one) => sum + one.disk_mb, 0) };
}
