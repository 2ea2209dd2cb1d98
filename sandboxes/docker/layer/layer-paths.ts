/** Which paths of a container's layer differ from its image, by the engine's own word, and which archives to ask for them. */
import type { IncomingMessage } from "node:http";
import { posix } from "node:path";
import type Docker from "dockerode";
import { z } from "zod";
import { AlidadeError, messageOf } from "../../../base/errors.ts";
import { readJson } from "../../../base/schema/read-json.ts";
import type { ArchiveRead, ChangedPath, Kind } from "./layer-source.ts";

/** Two hundred thousand paths of the usual length. Paths are what an agent can make without bytes. */
const mostListedBytes = 64 * 1024 * 1024;
const kinds: Kind[] = ["modified", "added", "deleted"];
const Listed = z.array(z.object({ Path: z.string(), Kind: z.number().int().min(0).max(2) })).nullable();

/** Throws `output_too_large` for a list that no work has. */
export async function changedPaths(docker: Docker, containerId: string): Promise<ChangedPath[]> {
  const stream = await listing(docker, containerId);
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > mostListedBytes) {
      stream.destroy();
      throw new AlidadeError("output_too_large", `The sandbox's layer changes more paths than ${mostListedBytes} bytes can name.`);
    }
    chunks.push(chunk);
  }
  const listed = Listed.parse(readJson(Buffer.concat(chunks).toString("utf8"))) ?? [];
  return listed.map(({ Path, Kind }) => [Path, kinds[Kind] as Kind]);
}

function listing(docker: Docker, containerId: string): Promise<IncomingMessage> {
  const options = {
    path: `/containers/${containerId}/changes`,
    method: "GET",
    isStream: true,
    statusCodes: { 200: true, 404: "no such container", 500: "server error" },
  };
  return new Promise((resolve, reject) => {
    docker.modem.dial(options, (error, stream) => (error ? reject(toListError(error)) : resolve(stream as IncomingMessage)));
  });
}

/** The engine cannot walk folders that are deeper than a path can say. */
function toListError(error: unknown): unknown {
  if (!/file name too long/i.test(messageOf(error))) return error;
  return new AlidadeError("output_too_large", "The sandbox's layer holds paths that are too long to be read.", { cause: error });
}

/** A request costs 40 ms, what an unchanged file costs to be read past is less than 1 ms. */
const mostReads = 24;

/**
 * The fewest bytes in at most `mostReads` archives: changed files alone and new folders whole; where these are too many,
 * the folders that hold them. `hidden`: folders that are mounted over, which no archive may read through.
 */
export function planReads(changed: Map<string, Kind>, roots: string[], hidden: string[]): ArchiveRead[] {
  const holdsHidden = (path: string) => hidden.some((one) => one.startsWith(`${path}/`));
  const paths = [...changed].filter(([, kind]) => kind !== "deleted").map(([path]) => path);
  const isNew = (path: string): boolean => changed.get(path) === "added" && !holdsHidden(path);
  let reads = new Map<string, boolean>();
  // Parents come before what is in them.
  for (const path of paths.sort()) if (!isCovered(path, reads)) reads.set(path, isNew(path));
  while (reads.size > mostReads) {
    const merged = mergeDeepest(reads, roots);
    if (merged.size === reads.size) break;
    reads = merged;
  }
  return [...reads].map(([path, whole]) => ({ path, whole }));
}

/** The deepest reads become one of the folder that holds them. Never above what was asked for. */
function mergeDeepest(reads: Map<string, boolean>, roots: string[]): Map<string, boolean> {
  const below = (path: string) => !roots.includes(path) && roots.some((root) => path.startsWith(root === "/" ? "/" : `${root}/`));
  const depth = (path: string) => path.split("/").length;
  const deepest = Math.max(0, ...[...reads.keys()].filter(below).map(depth));
  const moved = [...reads].map(([path, whole]): [string, boolean] =>
    below(path) && depth(path) === deepest && posix.dirname(path) !== "/" ? [posix.dirname(path), true] : [path, whole],
  );
  const merged = new Map<string, boolean>();
  for (const [path, whole] of moved.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)))
    if (!isCovered(path, merged)) merged.set(path, whole || merged.get(path) === true);
  return merged;
}

function isCovered(path: string, reads: Map<string, boolean>): boolean {
  for (let at = posix.dirname(path); at !== "/"; at = posix.dirname(at)) if (reads.get(at)) return true;
  return false;
}
