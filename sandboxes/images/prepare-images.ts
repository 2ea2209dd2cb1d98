/** The images of a run, before its rollouts start: each once, a few at a time. */
import type Docker from "dockerode";
import { type AlidadeError, asAlidadeError } from "../../errors.ts";
import { Limiter } from "../../host/limiter.ts";
import { hashOf } from "../../schema/ids.ts";
import type { Environment } from "../../schema/task.ts";
import type { PrepareOptions } from "../sandbox.ts";
import { environmentImage, readBuilds } from "./environment-image.ts";

/** One of these for each environment. */
export type PreparedImage = { image: string; error: null } | { image: null; error: AlidadeError };

/** Builds share the engine's processors, and pulls its network: more at once only share them further. */
const atOnce = 3;

/**
 * In the order of the environments. One image that fails is no reason against the others: its error stands in its place, and
 * `progress` says it. Throws `task_invalid` for a build context that no build may have, and what Alidade's own base image
 * fails with.
 */
export async function prepareImages(docker: Docker, environments: Environment[], options: PrepareOptions): Promise<PreparedImage[]> {
  await readBuilds(environments);
  const limiter = new Limiter(atOnce);
  const preparing = new Map<string, Promise<PreparedImage>>();
  const prepared = environments.map((environment) => {
    const key = orderKey(environment);
    const known = preparing.get(key) ?? limiter.run(options.signal, () => prepareOne(docker, environment, options));
    preparing.set(key, known);
    return known;
  });
  return Promise.all(prepared);
}

function orderKey({ image, build, platform }: Environment): string {
  return hashOf([image, build, platform]);
}

async function prepareOne(docker: Docker, environment: Environment, options: PrepareOptions): Promise<PreparedImage> {
  try {
    return { image: await environmentImage(docker, environment, options), error: null };
  } catch (cause) {
    options.signal.throwIfAborted();
    const isOurs = environment.image === null && environment.build === null;
    if (isOurs) throw cause;
    const error = asAlidadeError(cause, "sandbox_unavailable");
    options.progress?.(`${error.message}\nThe rollouts of its tasks will fail; those of other tasks go on.`);
    return { image: null, error };
  }
}
