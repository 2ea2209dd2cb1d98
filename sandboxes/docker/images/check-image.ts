import { AlidadeError } from "../../../base/errors.ts";
import { isBelow } from "../../../base/files/file-tree.ts";
import type { SandboxSpec } from "../../sandbox.ts";
import type { ImageFacts } from "./image-facts.ts";

/** Throws `sandbox_unavailable` naming the field of the task that this image cannot meet. */
export function checkImage({ workdir, platform }: Pick<SandboxSpec, "workdir" | "platform">, asked: string, image: ImageFacts): void {
  if (platform && platform !== image.platform)
    throw new AlidadeError(
      "sandbox_unavailable",
      `The image ${asked} is for ${image.platform}; environment.platform asks for ${platform}.`,
      { param: "platform" },
    );
  const volume = image.volumes.find((path) => isBelow(workdir, path));
  if (volume === undefined) return;
  throw new AlidadeError(
    "sandbox_unavailable",
    `environment.workdir ${workdir} lies in the VOLUME ${volume} of the image ${asked}, which hides the image's files: build the image without it.`,
    { param: "workdir" },
  );
}
