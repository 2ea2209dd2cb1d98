/** What `alidade doctor` says of the machine that sandboxes run on: what was left behind, what is kept, and what runs short. */
import { readdir, readFile, stat } from "node:fs/promises";
import { freemem, hostname, tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import type Docker from "dockerode";
import { messageOf } from "../base/errors.ts";
import { cacheRoot } from "../base/host/cache-folder.ts";
import { freeDisk, ownMemory } from "../base/host/room.ts";
import type { Finding } from "../engines/index.ts";
import type { DiskRules } from "./disk-budget.ts";
import { dockerClient } from "./docker/client.ts";
import { pruneImages } from "./docker/images/prune-images.ts";
import { docker } from "./docker.ts";
import { reapAll } from "./registry.ts";

/** MiB: what one sandbox may take by default. */
const scarce = 2048;
/** A layer's file has a name for the milliseconds until it is mounted. */
const layerFileMs = 60_000;
const layerFile = /^alidade-[0-9a-f]{16}$/;
const listed = 5;

type MachineFact = Omit<Finding, "what">;
type MachineLook = [what: string, look: () => Promise<MachineFact>];

export async function examineMachine(rules: DiskRules, signal: AbortSignal): Promise<Finding[]> {
  const missing = await docker.unavailable(signal);
  const engine = missing === null ? await dockerClient(signal) : null;
  const looks: MachineLook[] = [
    ["left behind", () => leftBehind(signal)],
    ["memory", memory],
    ["disk", () => disk(engine, rules.keep_free_gb)],
  ];
  if (engine !== null)
    looks.push(
      ["storage driver", () => storageDriver(engine)],
      ["layers left behind", () => layersLeft(engine)],
      ["images kept", () => imagesKept(engine, rules.images_gb, signal)],
    );
  const findings = looks.map(async ([what, look]): Promise<Finding> => ({ what, ...(await look().catch(unknown)) }));
  const noEngine: Finding[] = missing === null ? [] : [{ what: "Docker", found: missing, status: "unknown", todo: null }];
  return [...noEngine, ...(await Promise.all(findings))];
}

/** What the engine keeps layers with. */
export async function storageDriver(engine: Pick<Docker, "info">): Promise<MachineFact> {
  const { Driver = "unknown" } = (await engine.info()) as { Driver?: string };
  if (Driver !== "vfs") return { found: Driver, status: "ok", todo: null };
  const todo =
    'set overlay2 in the engine\'s configuration; for Podman without root install fuse-overlayfs and set driver = "overlay" in storage.conf';
  return { found: "vfs: each sandbox is a whole copy of its image, which is slow and takes its size on the disk", status: "gap", todo };
}

function unknown(error: unknown): MachineFact {
  return { found: messageOf(error), status: "unknown", todo: null };
}

async function leftBehind(signal: AbortSignal) {
  const { removed, failed } = await reapAll({ only_look: true }, signal);
  return found([...removed, ...failed], "alidade reap");
}

/** `what` in words; a line that says what removes it. */
function found(what: string[], todo: string): MachineFact {
  if (what.length === 0) return { found: "nothing", status: "ok", todo: null };
  const more = what.length > listed ? `; and ${what.length - listed} more` : "";
  return { found: `${what.slice(0, listed).join("; ")}${more}`, status: "gap", todo };
}

/** File systems of containers that are gone, and their files: a kill in the middle of a start leaves them. */
async function layersLeft(engine: Docker): Promise<MachineFact> {
  const { Name, DockerRootDir = "" } = (await engine.info()) as { Name?: string; DockerRootDir?: string };
  if (Name !== hostname()) return { found: "the engine is on another machine", status: "unknown", todo: null };
  const containers = await engine.listContainers({ all: true });
  const isInUse = (name: string) => containers.some(({ Id }) => name === `alidade-${Id.slice(0, 16)}`);
  const folder = join(DockerRootDir, "tmp");
  const devices = (await loopDevices(folder)).filter(({ name }) => !isInUse(name)).map(({ device }) => device);
  const files = await oldFiles(folder);
  const cures = [
    ...devices.map((device) => `umount ${device}; losetup -d ${device}`),
    ...(files.length === 0 ? [] : [`rm ${files.join(" ")}`]),
  ];
  return found([...devices, ...files], cures.join("; "));
}

/** Those whose file lies, or lay, in the folder. */
async function loopDevices(folder: string): Promise<{ device: string; name: string }[]> {
  const blocks = (await readdir("/sys/block").catch(() => [])).filter((block) => block.startsWith("loop"));
  const found = await Promise.all(
    blocks.map(async (block) => {
      const file = await readFile(`/sys/block/${block}/loop/backing_file`, "utf8").catch(() => "");
      const path = file.replace(/(?: \(deleted\))?\n?$/, "");
      return { device: `/dev/${block}`, name: dirname(path) === folder ? basename(path) : "" };
    }),
  );
  return found.filter(({ name }) => layerFile.test(name));
}

async function oldFiles(folder: string): Promise<string[]> {
  const names = (await readdir(folder).catch(() => [])).filter((name) => layerFile.test(name));
  const paths = names.map((name) => join(folder, name));
  const made = await Promise.all(paths.map((path) => stat(path).catch(() => null)));
  return paths.filter((_, index) => Date.now() - (made[index]?.mtimeMs ?? Date.now()) > layerFileMs);
}

/** They are no fault, and take space. */
async function imagesKept(engine: Docker, images_gb: number | null, signal: AbortSignal): Promise<MachineFact> {
  // Counts what there is; nothing is removed.
  const { bytes_left, images_left } = await pruneImages(engine, { keep: null, budget: null, dry_run: true }, signal);
  if (images_left === 0) return { found: "none of Alidade's", status: "ok", todo: null };
  const gigabytes = bytes_left / 1e9;
  const [of, todo] =
    images_gb === null
      ? ["without a budget", "set disk.images_gb, or alidade images prune --budget 20GB; a run makes or pulls them again"]
      : [
          `of ${images_gb} GB (disk.images_gb)`,
          `alidade images prune --budget ${images_gb}GB, or the next run, removes those that are not in use`,
        ];
  const isOver = images_gb !== null && gigabytes > images_gb;
  return {
    found: `${images_left} images, ${gigabytes.toFixed(1)} GB ${of}`,
    status: isOver ? "gap" : "ok",
    todo: isOver || images_gb === null ? todo : null,
  };
}

async function memory(): Promise<MachineFact> {
  const free = Math.floor(freemem() / 1024 ** 2);
  const all = ownMemory();
  const todo = "docker stats --no-stream shows what sandboxes take; fewer of them: concurrency.run, limits.memory_mb";
  return short(`${free} of ${all} MiB free`, free, todo);
}

async function disk(engine: Docker | null, keep_free_gb: number): Promise<MachineFact> {
  const info = engine === null ? null : ((await engine.info()) as { Name?: string; DockerRootDir?: string });
  const root = info?.Name === hostname() ? info.DockerRootDir : undefined;
  const places = [...(root === undefined ? [] : [root]), tmpdir(), cacheRoot()];
  const free = await Promise.all(places.map((place) => freeDisk(place).catch(() => null)));
  const said = places.map((place, index) => `${place}: ${free[index] === null ? "?" : `${free[index]} MiB`} free`);
  const least = Math.min(...free.filter((one) => one !== null));
  const stop = least * 1024 ** 2 < keep_free_gb * 1e9 ? `runs begin nothing below ${keep_free_gb} GB (disk.keep_free_gb); ` : "";
  return short(
    said.join(", "),
    stop === "" ? least : 0,
    `${stop}docker system df shows what the engine keeps, docker image prune removes images without a name`,
  );
}

function short(found: string, free: number, todo: string): MachineFact {
  return free < scarce ? { found, status: "gap", todo } : { found, status: "ok", todo: null };
}
