/** The volumes in which engines elsewhere have folders of ours, counted and pruned as images are. */
import type Docker from "dockerode";
import type { StoredImage } from "../../image-store.ts";
import { labels } from "../container.ts";
import { liveUse, mayBeElsewhere, usesOf } from "./image-uses.ts";

/** `kept`: names of volumes that containers have, with the reason in words. */
export async function listMounts(docker: Docker, kept: Map<string, string>, signal: AbortSignal): Promise<StoredImage[]> {
  const { Volumes } = await docker.listVolumes({ filters: { label: [labels.mount] }, abortSignal: signal });
  return Promise.all((Volumes ?? []).map((volume) => storedMount(volume as MadeVolume, kept)));
}

/** The type declarations leave the time out. */
type MadeVolume = Docker.VolumeInspectInfo & { CreatedAt?: string };

async function storedMount({ Name, Labels, CreatedAt }: MadeVolume, kept: Map<string, string>): Promise<StoredImage> {
  const uses = await usesOf(Name);
  const created = Date.parse(CreatedAt ?? "") || 0;
  const elsewhere = uses.length === 0 && mayBeElsewhere(created) ? "perhaps another machine, which made it within the last day" : null;
  return {
    id: Name,
    names: [Name],
    kind: "mount",
    // One of an earlier version has no such label, and counts as empty.
    bytes: Number(Labels?.[labels.mountBytes]) || 0,
    created,
    last_used: uses.at(-1)?.at ?? null,
    runs: [],
    tasks: [],
    in_use: kept.get(Name) ?? elsewhere ?? (await liveUse(uses)),
  };
}
