/** How the programs of an image start, by the engine's word. */
import { dockerClient } from "../docker/client.ts";
import type { PrepareOptions } from "../sandbox.ts";
import { environmentImage } from "./environment-image.ts";
import { imageAt } from "./image-at.ts";

/** Pulls an image that is not there. Throws `sandbox_unavailable` without an engine, and `image_pull_failed`. */
export async function imageStart(image: string, options: PrepareOptions): Promise<{ workdir: string; user: string }> {
  const docker = await dockerClient(options.signal);
  await environmentImage(docker, { image }, options);
  const { Config } = await imageAt(docker, image).inspect();
  return { workdir: Config.WorkingDir || "/", user: Config.User?.split(":")[0] || "root" };
}
