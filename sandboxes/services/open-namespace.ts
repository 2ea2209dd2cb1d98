/**
 * The network namespace that services apart share: that of a container of its own, which has no device and nothing but
 * loopback. Services come and may end; the namespace stays as long as this container, which only waits.
 */
import type Docker from "dockerode";
import type { Services } from "../../base/schema/environment/services.ts";
import { engineWork } from "../docker/client.ts";
import { boundedHost } from "../docker/container.ts";
import { makeContainer } from "../docker/make-container.ts";
import { removeContainer } from "../docker/remove.ts";
import { doorInside } from "../door/door-kind.ts";
import { doorPack, keeperFile } from "../door/door-pack.ts";
import { mountsAt } from "../engines/mounts.ts";
import { etcWithNames, namesOf } from "./etc-with-names.ts";
import type { ServiceNetwork, ServicePlace } from "./service-container.ts";
import { namespaceMegabytes } from "./takes-with-services.ts";

/** What it is made from: an image that the engine has, with the libraries that Node wants, and that image's files of /etc. */
export type NamespaceSource = { image: string; arch: string; etc: string };

/** `services`: those that are to share it. */
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
  // By name, for the engine may have made it although its answer never came.
  scope.defer(async () => void (await removeContainer(docker.getContainer(name))));
  const container = await makeContainer(docker, request(name, image, { labels, seccomp, mounts }), signal);
  await engineWork(docker).run(signal, () => container.start());
  const own = { container: container.id, etc: await etcWithNames(etc, namesOf(services)) };
  const release = scope.move();
  return { ...own, [Symbol.asyncDispose]: () => release.disposeAsync() };
}

/** Shorter than that of any service, for what is in it is removed before it, and no name of a service has a dot first. */
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
    Entrypoint: [`${doorInside}/${keeperFile}`],
    Cmd: [],
    User: "0:0",
    WorkingDir: "/",
    NetworkDisabled: true,
    Healthcheck: { Test: ["NONE"] },
    Labels: labels,
    HostConfig: {
      ...boundedHost({ memory_mb: namespaceMegabytes, cpus: 1, pids: 32 }, seccomp),
      NetworkMode: "none", // Podman does not know NetworkDisabled
      ReadonlyRootfs: true,
      LogConfig: { Type: "none", Config: {} },
      Mounts: mounts,
    },
  };
}
