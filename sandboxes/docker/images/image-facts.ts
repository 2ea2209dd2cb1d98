/** What we must know of an image before and after running it; read from its files, without starting anything of it. */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join, posix } from "node:path";
import type { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import type Docker from "dockerode";
import { z } from "zod";
import { AlidadeError, asAlidadeError } from "../../../base/errors.ts";
import { readTar } from "../../../base/files/read-tar.ts";
import { cached } from "../../../base/host/cache-folder.ts";
import { Healthcheck } from "../../../base/schema/environment/healthcheck.ts";
import { readJson } from "../../../base/schema/read-json.ts";
import { type ReadyCheck, readyCheck } from "../../healthcheck.ts";
import { isNotFound, statusOf } from "../client.ts";
import { agentId, etcFiles, home, hostname } from "../container.ts";
import { engineTraits } from "../engine-traits.ts";
import { imageAt } from "./image-at.ts";
import { unstarted } from "./unstarted.ts";

export type ImageFacts = {
  /** The engine's content id (`sha256:…`): the same id is the same image. */
  id: string;
  /** `name version`, sorted; null for an image without dpkg's list. */
  packages: string[] | null;
  /** The image's own PATH. */
  path: string;
  volumes: string[];
  bytes: number;
  /** `linux/amd64` */
  platform: string;
  /** `name@sha256:…`, by which a registry knows it; null where it came from none, or the engine does not tell. */
  repo_digest: string | null;
  /** [] for none. */
  entrypoint: string[];
  /** null: the image names none. */
  healthcheck: ReadyCheck | null;
  /** Where the image's own programs are started. */
  cwd: string;
  /** Host folder with `etcFiles`: the image's own lines and ours; and with `ownPasswd`. */
  etc: string;
};

/** The image's own list of users, for services: they keep the image's users. */
export const ownPasswd = "passwd.image";

const Known = z.strictObject({ packages: z.array(z.string()).nullable() });
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/** dpkg's list is about 200 kB for a base image and 10 MB for a desktop. */
const maxFileBytes = 64 * 1024 * 1024;

/** Raised when other files are kept of the same image. */
const layout = 3;

/** Without a network the engine writes no hosts file, and `localhost` would not resolve. IPv4 only: there may be no other. */
const hosts = `127.0.0.1\tlocalhost ${hostname}\n`;

/** All but what may change for the same content. */
type OwnFacts = Omit<ImageFacts, "repo_digest">;
const looking = new Map<string, Promise<OwnFacts>>();

/** Throws `sandbox_unavailable` for an image that is not on the engine. */
export async function imageFacts(docker: Docker, image: string): Promise<ImageFacts> {
  const inspected = await inspect(docker, image);
  const known = looking.get(inspected.Id) ?? look(docker, inspected);
  looking.set(inspected.Id, known);
  known.catch(() => looking.delete(inspected.Id));
  const { digestsOfRegistries } = await engineTraits(docker);
  return { ...(await known), repo_digest: digestsOfRegistries ? repoDigest(inspected, image) : null };
}

/** The image's own repository first: one that was pushed elsewhere has a digest there too. */
function repoDigest({ RepoDigests = [] }: Docker.ImageInspectInfo, image: string): string | null {
  const own = RepoDigests.find((digest) => image.startsWith(digest.split("@")[0] ?? digest));
  return own ?? RepoDigests[0] ?? null;
}

async function inspect(docker: Docker, image: string): Promise<Docker.ImageInspectInfo> {
  try {
    return await imageAt(docker, image).inspect();
  } catch (error) {
    if (!isNotFound(error)) throw asAlidadeError(error, "sandbox_unavailable", `Asking the Docker engine for image ${image}: `);
    throw new AlidadeError(
      "sandbox_unavailable",
      `The image "${image}" is not on this Docker engine. Pull it (docker pull ${image}) or build it (docker build -t ${image} .), then run again.`,
      { cause: error, param: "image" },
    );
  }
}

async function look(docker: Docker, image: Docker.ImageInspectInfo): Promise<OwnFacts> {
  const etc = await cached(`images/${image.Id.replace(":", "-")}-${layout}`, (folder) => readImage(docker, image.Id, folder));
  const { packages } = Known.parse(readJson(await readFile(join(etc, "image.json"), "utf8")));
  const path = image.Config.Env?.find((line) => line.startsWith("PATH="))?.slice(5);
  const platform = `${image.Os}/${image.Architecture}`;
  const volumes = Object.keys(image.Config.Volumes ?? {});
  const cwd = image.Config.WorkingDir || "/";
  const entrypoint = [image.Config.Entrypoint ?? []].flat();
  const healthcheck = ownCheck(image.Config as ImageConfig, cwd);
  return { id: image.Id, packages, path: path || defaultPath, volumes, bytes: image.Size, platform, etc, entrypoint, healthcheck, cwd };
}

/** Not in the types of dockerode. Times in nanoseconds; 0 and nothing are the default. */
type ImageConfig = {
  Healthcheck?: { Test?: string[]; Interval?: number; Timeout?: number; StartPeriod?: number; Retries?: number };
  Shell?: string[];
};

function ownCheck({ Healthcheck: own = {}, Shell }: ImageConfig, cwd: string): ReadyCheck | null {
  const [kind, ...words] = own.Test ?? [];
  if (words.length === 0 || (kind !== "CMD" && kind !== "CMD-SHELL")) return null;
  const seconds = (nanoseconds?: number) => (nanoseconds ? nanoseconds / 1e9 : undefined);
  const asked = Healthcheck.parse({
    command: kind === "CMD" ? words : [...(Shell ?? ["/bin/sh", "-c"]), ...words],
    interval_seconds: seconds(own.Interval),
    timeout_seconds: seconds(own.Timeout),
    start_period_seconds: seconds(own.StartPeriod),
    retries: own.Retries || undefined,
  });
  return { ...readyCheck(asked), cwd };
}

async function readImage(docker: Docker, id: string, folder: string): Promise<void> {
  await using container = await unstarted(docker, id);
  const text = async (path: string) => (await readOne(container.container, path))?.toString("utf8") ?? null;
  const passwd = (await text("/etc/passwd")) ?? "root:x:0:0:root:/root:/bin/sh\n";
  const group = (await text("/etc/group")) ?? "root:x:0:\n";
  const status = await text("/var/lib/dpkg/status");
  await mkdir(folder, { recursive: true });
  const etc = { passwd: withUser(passwd), group: withGroup(group), hosts, hostname: `${hostname}\n`, "resolv.conf": "" };
  for (const name of etcFiles) await writeFile(join(folder, name), etc[name], { mode: 0o644 });
  await writeFile(join(folder, ownPasswd), passwd);
  await writeFile(join(folder, "image.json"), `${JSON.stringify({ packages: status === null ? null : dpkgPackages(status) })}\n`);
}

/** Programs that look up their own user (Node's `os.userInfo`, git) fail for a uid without a line. */
function withUser(passwd: string): string {
  const others = passwd.split("\n").filter((line) => line !== "" && line.split(":")[2] !== String(agentId) && !line.startsWith("agent:"));
  return `${[...others, `agent:x:${agentId}:${agentId}:agent:${home}:/bin/sh`].join("\n")}\n`;
}

function withGroup(group: string): string {
  const others = group.split("\n").filter((line) => line !== "" && line.split(":")[2] !== String(agentId) && !line.startsWith("agent:"));
  return `${[...others, `agent:x:${agentId}:`].join("\n")}\n`;
}

/** `name version` of what is installed, from dpkg's own list. */
function dpkgPackages(status: string): string[] {
  const packages: string[] = [];
  for (const paragraph of status.split("\n\n")) {
    const field = (name: string) => new RegExp(`^${name}: (.*)$`, "m").exec(paragraph)?.[1];
    if (field("Status")?.endsWith(" installed")) packages.push(`${field("Package")} ${field("Version")}`);
  }
  return packages.sort();
}

/** One file's content; null when it is not there. Links are followed a few times: `/etc` is full of them. */
async function readOne(container: Docker.Container, path: string, links = 5): Promise<Buffer | null> {
  const stream = await container.getArchive({ path }).catch((error: unknown) => {
    if (statusOf(error) === 404) return null;
    throw error;
  });
  if (stream === null) return null;
  for await (const { header, content } of readTar(stream as Readable)) {
    const { type, size = 0, linkname } = header;
    if (type === "symlink" && linkname && links > 0) return readOne(container, posix.resolve(posix.dirname(path), linkname), links - 1);
    return type === "file" && size <= maxFileBytes ? await buffer(content) : null;
  }
  return null;
}

/** The CPU of an image in Node's words. */
export function cpuOf(platform: string): string {
  return platform === "linux/amd64" ? "x64" : platform.replace(/^linux\//, "");
}
