/** Brings the images of a run to all engines of a pool before the rollouts begin, so that each has the same content under a name. */
import { messageOf } from "../../../base/errors.ts";
import type { PreparedImage } from "../../image-store.ts";
import type { PrepareOptions } from "../../sandbox.ts";
import { isNotFound } from "../client.ts";
import { environmentImage } from "../images/environment-image.ts";
import { imageAt } from "../images/image-at.ts";
import type { DockerEngine, DockerEngines } from "./docker-engines.ts";

/** `images`: those that `first` has. An engine that cannot have one of them gets no sandboxes of it; `progress` says so. */
export async function spreadImages(
  pool: DockerEngines,
  first: DockerEngine,
  others: DockerEngine[],
  images: PreparedImage[],
  { signal, progress = () => {} }: PrepareOptions,
): Promise<void> {
  const ready = images.flatMap((one) => (one.error === null ? [[one.image, one] as const] : []));
  for (const [image, { id, repo_digest }] of new Map(ready)) {
    pool.fixImage(image, id);
    const bringTo = async (engine: DockerEngine) => {
      try {
        const found = await idAt(engine, image);
        if (found === null) {
          progress(`Bringing ${image} to ${engine.name}`);
          // What a registry has is pulled: an engine forgets the registry's digest of a copy.
          const order = { image, build: null };
          const pulled = repo_digest !== null && (await environmentImage(engine.docker, order, { signal }).catch(() => null));
          if (!pulled) await pool.bring(first, engine, image, signal);
        } else if (found !== id) progress(`${engine.name} has another image under the name ${image}: it gets no sandboxes of it`);
      } catch (error) {
        signal.throwIfAborted();
        progress(`${engine.name} gets no sandboxes of ${image} yet: ${messageOf(error)}`);
      }
    };
    await Promise.all(others.map(bringTo));
  }
}

async function idAt({ docker }: DockerEngine, image: string): Promise<string | null> {
  return imageAt(docker, image)
    .inspect()
    .then(
      ({ Id }) => Id,
      (error: unknown) => {
        if (isNotFound(error)) return null;
        throw error;
      },
    );
}
