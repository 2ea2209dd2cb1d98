/** Which runs want an image or a volume: lines in a file of the cache, one file an image, so that `images prune` knows what is in use and since when it is not. */
import { appendFile, mkdir, readFile, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { z } from "zod";
import { cacheRoot } from "../../../base/host/cache-folder.ts";
import { currentOwner, hostId, isOwnerAlive } from "../../../base/host/owner.ts";
import { tryJson } from "../../../base/schema/read-json.ts";

const ImageUse = z.strictObject({
  /** Milliseconds since 1970. */
  at: z.number(),
  owner: z.string(),
  host: z.string(),
  run_id: z.string().nullable(),
  /** The first of the run's tasks that want it. */
  tasks: z.array(z.string()),
  /** The name by which Alidade pulled it; null where it was there. */
  pulled: z.string().nullable(),
});
export type ImageUse = z.infer<typeof ImageUse>;

/** For people: enough to know the set by. */
const mostTasks = 20;
/** Two thousand runs; earlier ones are not needed. */
const mostBytes = 4 * 1024 * 1024;
/** What another machine, or this one before it started again, did with a shared engine: nothing here shows whether it goes on. */
const unknownOwnerMs = 24 * 3600_000;

/** `id`: the engine's content id, or the name of a volume. A note that cannot be written is no reason to fail a run: containers protect their images too. */
export async function noteUse(id: string, use: Partial<Pick<ImageUse, "run_id" | "tasks" | "pulled" | "owner" | "at">>): Promise<void> {
  const { run_id = null, tasks = [], pulled = null, at = Date.now() } = use;
  const owner = use.owner ?? (await currentOwner());
  const line: ImageUse = { at, owner, host: await hostId(), run_id, tasks: tasks.slice(0, mostTasks), pulled };
  try {
    await mkdir(dirname(fileOf(id)), { recursive: true });
    await appendFile(fileOf(id), `${JSON.stringify(line)}\n`);
  } catch {
    // as above
  }
}

/** Oldest first; a line that cannot be read is left out. */
export async function usesOf(id: string): Promise<ImageUse[]> {
  const text = await readFile(fileOf(id), "utf8").catch(() => "");
  return text
    .slice(-mostBytes)
    .split("\n")
    .flatMap((line) => {
      const use = ImageUse.safeParse(tryJson(line));
      return use.success ? [use.data] : [];
    });
}

/** Once the image is removed. */
export async function forgetUses(id: string): Promise<void> {
  await rm(fileOf(id), { force: true });
}

/** A run that may still want it, in words; null: none does. */
export async function liveUse(uses: ImageUse[]): Promise<string | null> {
  const host = await hostId();
  for (const { at, owner, host: where, run_id } of uses.toReversed()) {
    const isLive = where === host ? await isOwnerAlive(owner) : mayBeElsewhere(at);
    if (isLive) return run_id === null ? `process ${owner.split(":")[0]}` : `run ${run_id}`;
  }
  return null;
}

/** What was asked for at this time may be in use where nothing here can look. */
export function mayBeElsewhere(at: number): boolean {
  return at > Date.now() - unknownOwnerMs;
}

function fileOf(id: string): string {
  return join(cacheRoot(), "image-uses", `${id.replace(/[^\w.-]/g, "-")}.jsonl`);
}
