/** The images of a run, before its rollouts start: each once, a few at a time. */

import type Docker from "dockerode";
import { asAlidadeError } from "../../../base/errors.ts";
import { Limiter } from "../../../base/host/limiter.ts";
import { hashOf } from "../../../base/schema/ids.ts";
import type { Environment } from "../../../base/schema/task.ts";
import type { PreparedImage } from "../../image-store.ts";
import type { PrepareOptions } from "../../sandbox.ts";
import { environmentImage, readBuilds } from "./environment-image.ts";
import { imageFacts } from "./image-facts.ts";
import { noteUse } from "./image-uses.ts";

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
  const orders = Map.groupBy(environments.keys(), (index) => orderKey(environments[index] as Environment));
  const prepared: PreparedImage[] = [];
  const prepareAll = [...orders.values()].map(async (indexes) => {
    const environment = environments[indexes[0] ?? 0] as Environment;
    const tasks = [...new Set(indexes.flatMap((index) => options.user?.tasks[index] ?? []))];
    const image = await limiter.run(options.signal, () => prepareOne(docker, environment, tasks, options));
    // At once: another image may take minutes, and what is wanted must not be pruned meanwhile.
    if (options.user && image.error === null) await noteUse(image.id, { run_id: options.user.run_id, tasks });
    for (const index of indexes) prepared[index] = image;
  });
  await Promise.all(prepareAll);
  return prepared;
}

function orderKey({ image, build, platform }: Environment): string {
  return hashOf([image, build, platform]);
}

/** As many names as a person reads. */
const mostNamed = 10;

async function prepareOne(docker: Docker, environment: Environment, tasks: string[], options: PrepareOptions): Promise<PreparedImage> {
  try {
    const image = await environmentImage(docker, environment, options);
    const { id, repo_digest, bytes } = await imageFacts(docker, image);
    return { image, error: null, id, repo_digest, bytes };
  } catch (cause) {
    options.signal.throwIfAborted();
    const isOurs = environment.image === null && environment.build === null;
    const error = asAlidadeError(cause, "sandbox_unavailable");
    if (isOurs || error.code === "store_full") throw cause;
    options.progress?.(`${namesOf(tasks)}${error.message}`);
    return { image: null, error };
  }
}

/** `task a, b: `, to stand before what is wrong with their image. */
function namesOf(tasks: string[]): string {
  if (tasks.length === 0) return "";
  const more = tasks.length > mostNamed ? ` and ${tasks.length - mostNamed} more` : "";
  return `task ${tasks.slice(0, mostNamed).join(", ")}${more}: `;
}
