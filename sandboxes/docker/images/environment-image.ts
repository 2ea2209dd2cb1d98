/** The image of an environment, made or fetched where the engine does not have it: once, however many ask for it. */

import type Docker from "dockerode";
import { AlidadeError, messageOf } from "../../../base/errors.ts";
import { SharedWork } from "../../../base/host/shared-work.ts";
import type { Build } from "../../../base/schema/environment/build.ts";
import { hashOf } from "../../../base/schema/ids.ts";
import type { Environment } from "../../../base/schema/task.ts";
import { packagesOfDesktop } from "../../desktop/desktop-word.ts";
import type { PrepareOptions } from "../../sandbox.ts";
import { dockerClient, perEngine } from "../client.ts";
import { hasImage } from "./has-image.ts";
import { imageAt } from "./image-at.ts";
import { noteUse } from "./image-uses.ts";
import { baseImage, ensureBaseImage } from "./made/base-image.ts";
import { readContext } from "./made/build-context.ts";
import { buildImage } from "./made/build-image.ts";
import { desktopImageOf, ensureDesktopImage } from "./made/desktop-image.ts";
import { imagesOf } from "./made/dockerfile.ts";
import { pullImage } from "./pull-image.ts";

export type ImageOrder = Pick<Environment, "image"> & { build?: Build | null; platform?: string | null; snapshot?: string };

/** The engine's name for it: a local one comes before any registry. Throws `image_pull_failed` or `image_build_failed`. */
export async function environmentImage(docker: Docker, order: ImageOrder, options: PrepareOptions): Promise<string> {
  const { image, build = null, platform = null } = order;
  if (build !== null) return builtImage(docker, build, platform, options);
  if (image === null) return ensureBaseImage(options, docker);
  const desktop = packagesOfDesktop(image);
  if (desktop !== null) return ensureDesktopImage(desktop, options, docker);
  await ensurePulled(docker, image, platform, options);
  return image;
}

/** The engine's name for it, whether it is there or not. */
export async function imageNameOf({ image, build = null, platform = null, snapshot }: ImageOrder): Promise<string> {
  if (snapshot !== undefined) return snapshot;
  if (build !== null) return nameOf(build, platform);
  const desktop = packagesOfDesktop(image);
  return desktop === null ? (image ?? baseImage) : desktopImageOf(desktop);
}

/** Names of builds by what was asked for: the rollouts of a run have one image, whatever happens to the folder meanwhile. */
const names = new Map<string, Promise<string>>();

/**
 * Forgets what is known of earlier failures and contexts, so that a new run reads and tries again; reads the contexts.
 * Throws `task_invalid` for a context that no build may have.
 */
export async function readBuilds(orders: ImageOrder[]): Promise<void> {
  forgotten = performance.now();
  for (const { build = null, platform = null } of orders) if (build !== null) names.delete(hashOf([build, platform]));
  for (const { build = null, platform = null } of orders) if (build !== null) await nameOf(build, platform);
}

/** `alidade/built:<hash>`: the same context, Dockerfile, arguments and platform are the same image. */
function nameOf(build: Build, platform: string | null): Promise<string> {
  const key = hashOf([build, platform]);
  const known = names.get(key) ?? named(build, platform);
  names.set(key, known);
  known.catch(() => names.delete(key));
  return known;
}

async function named(build: Build, platform: string | null): Promise<string> {
  return builtName((await readContext(build)).sha256, build, platform);
}

function builtName(context: string, { dockerfile, args }: Build, platform: string | null): string {
  return `alidade/built:${hashOf([context, dockerfile, args, platform]).slice(0, 16)}`;
}

async function builtImage(docker: Docker, build: Build, platform: string | null, options: PrepareOptions): Promise<string> {
  const image = await nameOf(build, platform);
  await once(docker, image, options, async (own) => {
    const context = await readContext(build);
    if (builtName(context.sha256, build, platform) !== image)
      throw new AlidadeError("image_build_failed", `The build context ${build.context} changed after this run began: begin a new run.`, {
        param: "environment.build.context",
      });
    for (const from of imagesOf(context.dockerfile.text, build.args))
      await ensurePulled(docker, from.image, from.platform ?? platform, own);
    await buildImage(docker, { image, context, args: build.args, platform }, own);
  });
  return image;
}

async function ensurePulled(docker: Docker, image: string, platform: string | null, options: PrepareOptions): Promise<void> {
  await once(docker, image, options, async (own) => {
    await pullImage(docker, image, platform, own);
    await noteUse((await imageAt(docker, image).inspect()).Id, { pulled: image });
  });
}

const running = perEngine(() => new Map<string, SharedWork<void>>());
/** An image that could not be made fails each of its rollouts at once, and not after one more attempt for each. */
const failures = perEngine(() => new Map<string, { error: AlidadeError; at: number }>());
/** Failures of before this count no more. */
let forgotten = 0;
/** A registry that was away may be back. A build fails again from the same content. */
const pullAgainMs = 60_000;

/** `make` runs unless the engine has the image, it is being made, or it has just failed. */
async function once(
  docker: Docker,
  image: string,
  { signal, progress = () => {}, space }: PrepareOptions,
  make: (options: PrepareOptions) => Promise<void>,
): Promise<void> {
  if (await hasImage(docker, image)) return;
  const failure = failures(docker).get(image);
  if (failure && failure.at >= forgotten && (failure.error.code === "image_build_failed" || performance.now() - failure.at < pullAgainMs))
    throw failure.error;
  await space?.(signal);
  const work = running(docker).get(image) ?? new SharedWork<void>();
  running(docker).set(image, work);
  await work.join(signal, (stop) =>
    make({ signal: stop, progress })
      .catch((error: unknown) => {
        stop.throwIfAborted();
        throw remembered(docker, image, error);
      })
      .finally(() => running(docker).delete(image)),
  );
}

function remembered(docker: Docker, image: string, cause: unknown): AlidadeError {
  const error = cause instanceof AlidadeError ? cause : new AlidadeError("sandbox_unavailable", `${image}: ${messageOf(cause)}`, { cause });
  failures(docker).set(image, { error, at: performance.now() });
  return error;
}

/** How the programs of an image start, by the engine's word. Pulls an image that is not there. Throws `sandbox_unavailable` without an engine, and `image_pull_failed`. */
export async function imageStart(image: string, options: PrepareOptions): Promise<{ workdir: string; user: string }> {
  const docker = await dockerClient(options.signal);
  await environmentImage(docker, { image }, options);
  const { Config } = await imageAt(docker, image).inspect();
  return { workdir: Config.WorkingDir || "/", user: Config.User?.split(":")[0] || "root" };
}
