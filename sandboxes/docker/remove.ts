/** Removes containers and volumes, beside other processes that may do the same. */
import type Docker from "dockerode";
import { messageOf } from "../../base/errors.ts";
import { engineWork, statusOf } from "./client.ts";
import { labels } from "./container.ts";

/**
 * Removes the volumes with these labels that no container uses, as far as it can; returns the labels of those that are
 * gone, and in words what is not. `wanted` picks among them.
 */
export async function removeVolumes(
  docker: Docker,
  label: string[],
  wanted: (labels: Record<string, string>) => Promise<boolean> = async () => true,
  onlyLook = false,
): Promise<{ removed: Record<string, string>[]; failed: string[] }> {
  // Podman lists what meets one of two filters.
  const [{ Volumes }, unused] = await Promise.all([
    docker.listVolumes({ filters: { label } }),
    docker.listVolumes({ filters: { dangling: ["true"] } }),
  ]);
  const isUnused = new Set(unused.Volumes?.map(({ Name }) => Name));
  const removed: Record<string, string>[] = [];
  const failed: string[] = [];
  for (const { Name, Labels } of Volumes ?? []) {
    if (!isUnused.has(Name) || !(await wanted(Labels ?? {}))) continue;
    try {
      if (!onlyLook) await docker.getVolume(Name).remove();
      removed.push(Labels ?? {});
    } catch (error) {
      if (!isNotOurs(error)) failed.push(`volume ${Name} of run ${Labels?.[labels.run]}: ${messageOf(error)}`);
    }
  }
  return { removed, failed };
}

/** Removes a container with its volumes. No error when it is gone, or when another process is removing it: then false. */
export async function removeContainer(container: Docker.Container): Promise<boolean> {
  try {
    await engineWork(container).run(undefined, () => container.remove({ force: true, v: true }));
    return true;
  } catch (error) {
    if (!isNotOurs(error)) throw error;
    return false;
  }
}

/** True when it is gone, in use again, or being removed by another process. */
function isNotOurs(error: unknown): boolean {
  const status = statusOf(error);
  return status === 404 || status === 409;
}
