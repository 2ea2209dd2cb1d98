/** Removes images and volumes that Alidade made or pulled, least recently used first, and never one that is in use. */

import { createHash } from "node:crypto";
import type Docker from "dockerode";
import { messageOf } from "../../../base/errors.ts";
import type { Pruned, PruneOptions, StoredImage } from "../../image-store.ts";
import { imageAt } from "./image-at.ts";
import { forgetUses, usesOf } from "./image-uses.ts";
import { lastUse, listImages } from "./list-images.ts";

export async function pruneImages(docker: Docker, { keep, budget, dry_run }: PruneOptions, signal: AbortSignal): Promise<Pruned> {
  const left = await listImages(docker, signal);
  const layers = new Map<string, Map<string, number>>();
  for (const { id, kind, bytes } of left) layers.set(id, kind === "mount" ? new Map([[id, bytes]]) : await layersOf(docker, id));
  const bytesLeft = () => sum(left.map(({ id }) => layers.get(id) ?? new Map()));
  const pruned: Pruned = { removed: [], failed: [], bytes_left: 0, images_left: 0 };
  // What was made from an image is as old as its use at most, and goes before it.
  const oldest = left.filter(isRemovable).sort((a, b) => lastUse(a) - lastUse(b) || b.created - a.created);
  for (const image of oldest) {
    signal.throwIfAborted();
    if (left.length <= (keep ?? Number.POSITIVE_INFINITY) && bytesLeft() <= (budget ?? Number.POSITIVE_INFINITY)) break;
    try {
      if (!dry_run && image.kind === "mount") await removeMount(docker, image);
      else if (!dry_run) await remove(docker, image, signal);
      pruned.removed.push(image);
      left.splice(left.indexOf(image), 1);
    } catch (error) {
      signal.throwIfAborted();
      pruned.failed.push({ image, message: messageOf(error) });
    }
  }
  return { ...pruned, bytes_left: bytesLeft(), images_left: left.length };
}

/** What a person put on the engine is that person's to remove. */
function isRemovable({ kind, in_use }: StoredImage): boolean {
  return in_use === null && kind !== "local";
}

/** Without force: the engine refuses where a container was made with it meanwhile. */
async function removeMount(docker: Docker, { id }: StoredImage): Promise<void> {
  await docker.getVolume(id).remove();
  await forgetUses(id);
}

/** Under our names only, and without force: where a person gave it another name, it stays under that. */
async function remove(docker: Docker, image: StoredImage, signal: AbortSignal): Promise<void> {
  const filters = { ancestor: [image.id] };
  const [container] = await docker.listContainers({ all: true, filters, abortSignal: signal });
  if (container !== undefined) throw new Error(`container ${container.Names[0] ?? container.Id} was made of it meanwhile`);
  const pulled = new Set((await usesOf(image.id)).map((use) => use.pulled));
  const ours = image.names.filter((name) => name.startsWith("alidade/") || pulled.has(name) || pulled.has(name.replace(/:latest$/, "")));
  for (const name of ours.length > 0 ? ours : [image.id]) await imageAt(docker, name).remove({ abortSignal: signal });
  await forgetUses(image.id);
}

/**
 * Layer -> bytes. The engine names no layers with their sizes, but the steps that made them; the same first steps, made in
 * the same second, are the same layers.
 */
async function layersOf(docker: Docker, id: string): Promise<Map<string, number>> {
  const steps = (await imageAt(docker, id).history()) as { Created: number; CreatedBy: string; Size: number }[];
  const layers = new Map<string, number>();
  const chain = createHash("sha256");
  for (const { Created, CreatedBy, Size } of steps.toReversed()) {
    chain.update(`${JSON.stringify([Created, CreatedBy, Size])}\n`);
    layers.set(chain.copy().digest("hex"), Size);
  }
  return layers;
}

function sum(images: Map<string, number>[]): number {
  const layers = new Map(images.flatMap((one) => [...one]));
  return [...layers.values()].reduce((total, bytes) => total + bytes, 0);
}
