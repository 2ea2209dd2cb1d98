/**
 * Opens the network namespace that services apart share. A container holds it that only waits, so the namespace outlives
 * each service. It has no network device but loopback.
 */
import type Docker from "dockerode";
import type { Services } from "../../../base/schema/environment/services.ts";
import { doorInside } from "../../door/door-kind.ts";
import { doorPack } from "../../door/door-pack.ts";
import { namespaceMegabytes } from "../../takes-with-services.ts";
import { engineWork } from "../client.ts";
import { boundedHost, keptOpen, withoutNetworkOrLog } from "../container.ts";
import { mountsAt } from "../hosts/mounts.ts";
import { makeContainer } from "../make-container.ts";
import { removeContainer } from "../remove.ts";
import { etcWithNames, namesOf } from "./etc-with-names.ts";
import type { ServiceNetwork, ServicePlace } from "./service-container.ts";

/** `image`: one that the engine has, with the libraries that Node needs. `etc`: that image's files of /etc. */
export type NamespaceSource = { image: string; arch: string; etc: string };

/** `services`: those that share the namespace. */
export async function openNamespace(
  { docker, sandbox, labels, seccomp }: ServicePlace,
  services: Services,
  { image, arch, etc }: NamespaceSource,
  signal: AbortSignal,
): Promise<ServiceNetwork & AsyncDisposable> {
  const folders = { [doorInside]: await doorPack(arch) };
  const mounts = await mountsAt(docker, image, { folders, files: { folder: etc, names: {} } }, signal);
  const name = namespaceName(sandbox);
  await using scope = new AsyncDisposableStack();
  // Remove it by name: the engine may have made it even if its answer never came.
  scope.defer(async () => void (await removeContainer(docker.getContainer(name))));
  const container = await makeContainer(docker, request(name, image, { labels, seccomp, mounts }), signal);
  await engineWork(docker).run(signal, () => container.start());
  const own = { container: container.id, etc: await etcWithNames(etc, namesOf(services)) };
  const release = scope.move();
  return { ...own, [Symbol.asyncDispose]: () => release.disposeAsync() };
}

/** Shorter than the name of any service, because containers in the namespace are removed before it. No service name begins with a dot. */
export function namespaceName(sandbox: string): string {
  return `${sandbox}.`;
}

function request(
  name: string,
  image: string,
  { labels, seccomp, mounts }: Pick<ServicePlace, "labels" | "seccomp"> & { mounts: Docker.MountSettings[] },
): Docker.ContainerCreateOptions {
  return {
    name,
    Image: image,
    ...keptOpen,
    Labels: labels,
    HostConfig: {
      ...boundedHost({ memory_mb: namespaceMegabytes, cpus: 1, pids: 32 }, seccomp),
      ...withoutNetworkOrLog,
      ReadonlyRootfs: true,
      Mounts: mounts,
    },
  };
}
