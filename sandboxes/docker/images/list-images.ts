/** The images and volumes of an engine that Alidade made, pulled or used, with what keeps them. */

import type Docker from "dockerode";
import type { StoredImage } from "../../image-store.ts";
import { type ImageUse, liveUse, usesOf } from "./image-uses.ts";
import { listMounts } from "./list-mounts.ts";
import { baseImage } from "./made/base-image.ts";
import { desktopImage } from "./made/desktop-image.ts";

const kinds = ["base", "desktop", "built", "owned", "snapshot"] as const;
const current = new Map([
  [baseImage, "the base image of this Alidade"],
  [desktopImage, "the desktop image of this Alidade"],
]);

/** Last used first. */
export async function listImages(docker: Docker, signal: AbortSignal): Promise<StoredImage[]> {
  const all = await docker.listImages({ all: true, abortSignal: signal });
  const kept = await keptByContainers(docker, all, signal);
  const found: StoredImage[] = await listMounts(docker, kept, signal);
  for (const image of all) {
    const uses = await usesOf(image.Id);
    const names = (image.RepoTags ?? []).filter((name) => name !== "<none>:<none>").map(asGiven);
    const kind = kindOf(names, uses);
    if (kind === null) continue;
    // One that was made for an agent is used when the image that it was made from is.
    const wanted = kind === "owned" ? [...uses, ...(await usesOf(image.ParentId))] : uses;
    const times = wanted.map(({ at }) => at);
    found.push({
      id: image.Id,
      names: names.length > 0 ? names : (image.RepoDigests ?? []),
      kind,
      bytes: image.Size,
      created: image.Created * 1000,
      last_used: times.length === 0 ? null : Math.max(...times),
      runs: distinct(wanted.flatMap(({ run_id }) => (run_id === null ? [] : [run_id]))),
      tasks: distinct(wanted.flatMap(({ tasks }) => tasks)),
      in_use: kept.get(image.Id) ?? ownUse(names) ?? (await liveUse(wanted)),
    });
  }
  return found.sort((a, b) => lastUse(b) - lastUse(a));
}

function ownUse(names: string[]): string | null {
  return names.map((name) => current.get(name)).find((why) => why !== undefined) ?? null;
}

/** Podman puts a host before the names that it was given without one. */
function asGiven(name: string): string {
  return name.replace(/^localhost\/(?=alidade\/)/, "");
}

/** Its making counts where no use is known. Milliseconds since 1970. */
export function lastUse({ last_used, created }: Pick<StoredImage, "last_used" | "created">): number {
  return Math.max(last_used ?? 0, created);
}

function kindOf(names: string[], uses: ImageUse[]): StoredImage["kind"] | null {
  const own = kinds.find((kind) => names.some((name) => name.startsWith(`alidade/${kind}:`)));
  return own ?? (uses.some(({ pulled }) => pulled !== null) ? "pulled" : uses.length > 0 ? "local" : null);
}

/** Content id or volume's name -> why: a container is made of it, running or not, or of one that was made from it. */
async function keptByContainers(docker: Docker, all: Docker.ImageInfo[], signal: AbortSignal): Promise<Map<string, string>> {
  const parents = new Map(all.map(({ Id, ParentId }) => [Id, ParentId]));
  const kept = new Map<string, string>();
  for (const { ImageID, Names, Id, Mounts } of await docker.listContainers({ all: true, abortSignal: signal })) {
    const why = `container ${(Names[0] ?? Id).replace(/^\//, "")}`;
    for (let id: string | undefined = ImageID; id && !kept.has(id); id = parents.get(id)) kept.set(id, why);
    for (const { Name } of Mounts ?? []) if (Name) kept.set(Name, why);
  }
  return kept;
}

function distinct(words: string[]): string[] {
  return [...new Set(words)];
}
