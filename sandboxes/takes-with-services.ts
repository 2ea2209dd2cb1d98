/** What a sandbox may take of the machine at most, with the services beside it. */
import type { Services } from "../base/schema/environment/services.ts";
import type { Limits } from "../base/schema/task.ts";
import type { Room } from "./sandbox.ts";

/** Memory of the container that holds the namespace of services apart. The forwarder runs there in Node, and takes half of it. */
export const namespaceMegabytes = 128;

export function takesWithServices({ memory_mb, disk_mb }: Limits, services: Services = {}): Room & { memory_mb: number } {
  const isSomeApart = Object.values(services).some(({ network }) => network === "apart");
  const namespace = isSomeApart ? [{ memory_mb: namespaceMegabytes, disk_mb: 0 }] : [];
  const all = [{ memory_mb, disk_mb }, ...Object.values(services), ...namespace];
  return { memory_mb: all.reduce((sum, one) => sum + one.memory_mb, 0), disk_mb: all.reduce((sum, one) => sum + one.disk_mb, 0) };
}
