/**
 * What a container changed, from the folders of its overlay: only what lies in the upper folder is looked at, so that the
 * size of the image costs nothing. The calls are synchronous, for each takes a few microseconds and a thread's answer
 * forty; between batches of them other work goes on.
 */
import { type BigIntStats, closeSync, lstatSync, opendirSync, readdirSync } from "node:fs";
import { posix } from "node:path";
import { setImmediate as yieldToOthers } from "node:timers/promises";
import type { Kind } from "./layer-source.ts";
import { type OverlayMounts, openFolder } from "./overlay-mounts.ts";

/** `kind`: null for a file that is as in the image and lies in the layer under more than one name. */
export type OverlayChange = { path: string; kind: Kind | null };

/** One folder in the layer, in the container's root and, where it is one there too, in the image. */
type Views = Pick<OverlayMounts, "upper" | "merged"> & { image: number | null };

/** Half a millisecond of looks. */
const batch = 64;

/** Differences at each asked path, in the folders above it, and below it. Throws for an aborted signal. */
export async function* overlayChanges(mounts: OverlayMounts, asked: string[], signal?: AbortSignal): AsyncGenerator<OverlayChange> {
  const outermost = asked.filter((path) => !asked.some((other) => other !== path && (other === "/" || path.startsWith(`${other}/`))));
  for (const path of new Set(outermost)) {
    if (path === "/") yield* below("/", mounts, lstatAt(mounts.merged, Buffer.from(".")), signal);
    else yield* along(path.slice(1).split("/"), "/", mounts, signal);
  }
}

/** Goes down to one asked path. */
async function* along([name = "", ...rest]: string[], folder: string, at: Views, signal?: AbortSignal): AsyncGenerator<OverlayChange> {
  if (rest.length === 0) yield* one(Buffer.from(name), folder, at, signal);
  else {
    const { path, kind, now, before } = look(Buffer.from(name), folder, at);
    if (kind !== null) yield { path, kind };
    using views = now?.isDirectory() ? open(at, Buffer.from(name), before) : null;
    if (views !== null) yield* along(rest, path, views, signal);
  }
}

/** Returns whether anything below differs. */
async function* below(folder: string, at: Views, now: BigIntStats | null, signal?: AbortSignal): AsyncGenerator<OverlayChange, boolean> {
  let differs = false;
  using names = namesIn(at.upper);
  for (let looks = 1, name = names.next(); name !== null; looks++, name = names.next()) {
    if (looks % batch === 0) await yieldToOthers();
    signal?.throwIfAborted();
    if (yield* one(name, folder, at, signal, now?.dev)) differs = true;
  }
  // A folder that was removed and made again hides the image's, and no name in the layer says so.
  const there = at.image === null ? null : new Set(readdirSync(inside(at.merged), "latin1"));
  for (const name of there && at.image !== null ? readdirSync(inside(at.image), "latin1") : []) {
    if (there?.has(name)) continue;
    yield { path: posix.join(folder, Buffer.from(name, "latin1").toString("utf8")), kind: "deleted" };
    differs = true;
  }
  await yieldToOthers();
  return differs;
}

/** One name and all below it; returns whether anything differs. What is gone is told by its folder, but where it was asked for. */
async function* one(
  name: Buffer,
  folder: string,
  at: Views,
  signal?: AbortSignal,
  device?: bigint,
): AsyncGenerator<OverlayChange, boolean> {
  const { path, kind, now, before } = look(name, folder, at);
  if (now === null) {
    if (kind !== null && device === undefined) yield { path, kind };
    return false;
  }
  if (kind !== null) yield { path, kind };
  else if (!now.isDirectory() && now.nlink > 1) yield { path, kind };
  // Another device is mounted there, for a moment, by the engine.
  if (!now.isDirectory() || (device !== undefined && now.dev !== device)) return kind !== null;
  using views = open(at, name, before);
  const isInside = views !== null && (yield* below(path, views, now, signal));
  if (isInside && kind === null) yield { path, kind: "modified" };
  return kind !== null || isInside;
}

function look(name: Buffer, folder: string, at: Views) {
  const now = lstatAt(at.merged, name);
  const before = at.image === null ? null : lstatAt(at.image, name);
  const path = posix.join(folder, name.toString("utf8"));
  return { path, now, before, kind: kindOf(before, now) };
}

function kindOf(before: BigIntStats | null, now: BigIntStats | null): Kind | null {
  if (before === null) return now === null ? null : "added";
  if (now === null) return "deleted";
  return isDifferent(before, now) ? "modified" : null;
}

/** As the engine compares. */
function isDifferent(before: BigIntStats, now: BigIntStats): boolean {
  const isSame = (["mode", "uid", "gid", "rdev"] as const).every((field) => before[field] === now[field]);
  return !isSame || (!now.isDirectory() && (before.mtimeNs !== now.mtimeNs || before.size !== now.size));
}

/** null: there is nothing to open in the layer, for nothing below it changed. */
function open(at: Views, name: Buffer, before: BigIntStats | null): (Views & Disposable) | null {
  const opened: number[] = [];
  const close = () => {
    for (const one of opened) closeSync(one);
  };
  const openIn = (folder: number) => {
    const made = openFolder(inside(folder, name));
    opened.push(made);
    return made;
  };
  try {
    const upper = openIn(at.upper);
    const merged = openIn(at.merged);
    const image = before?.isDirectory() && at.image !== null ? openIn(at.image) : null;
    return { upper, merged, image, [Symbol.dispose]: close };
  } catch (error) {
    close();
    if (isMissing(error)) return null;
    throw error;
  }
}

/** Piece by piece: all names of a large folder together could fill our memory. */
function namesIn(folder: number): Disposable & { next(): Buffer | null } {
  // The types know no buffers as names here; Node does.
  const open = opendirSync(inside(folder), { bufferSize: 256, encoding: "buffer" as BufferEncoding });
  return {
    next: () => (open.readSync()?.name as unknown as Buffer | undefined) ?? null,
    [Symbol.dispose]: () => open.closeSync(),
  };
}

/** The path of an open folder, or of a name in it: no part of it can be led elsewhere. */
export function inside(folder: number, name?: Buffer | string): Buffer {
  return Buffer.concat([Buffer.from(`/proc/self/fd/${folder}/`), Buffer.from(name ?? ".")]);
}

/** null where nothing is. A link is not followed. */
export function lstatAt(folder: number, name: Buffer | string): BigIntStats | null {
  try {
    return lstatSync(inside(folder, name), { bigint: true });
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}

/** Nothing is there, or no folder, or a link where a folder was. */
export function isMissing(error: unknown): boolean {
  return ["ENOENT", "ENOTDIR", "ELOOP"].includes((error as NodeJS.ErrnoException).code ?? "");
}
