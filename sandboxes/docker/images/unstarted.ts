import { randomBytes } from "node:crypto";
import type Docker from "dockerode";
import { currentOwner, hostId } from "../../../base/host/owner.ts";
import { Limits } from "../../../base/schema/task.ts";
import { engineWork } from "../client.ts";
import { sandboxLabels } from "../container.ts";
import { makeContainer } from "../make-container.ts";

/** A container of the image that is not started, to read files from. */
export async function unstarted(
  docker: Docker,
  image: string,
  more: Docker.ContainerCreateOptions = {},
): Promise<AsyncDisposable & { container: Docker.Container }> {
  const name = `alidade-look-${randomBytes(6).toString("hex")}`;
  // Labelled like a sandbox, so that the reaper finds one that was left behind.
  const limits = Limits.parse({});
  const ownLabels = sandboxLabels({ run_id: "look", owner: await currentOwner(), limits }, await hostId());
  const container = await makeContainer(docker, {
    Labels: ownLabels,
    name,
    Image: image,
    Entrypoint: ["true"],
    Cmd: [],
    NetworkDisabled: true,
    HostConfig: { NetworkMode: "none" },
    ...more,
  });
  return {
    container,
    [Symbol.asyncDispose]: async () => {
      await engineWork(docker)
        .run(undefined, () => container.remove({ force: true, v: true }))
        .catch(() => {});
    },
  };
}
