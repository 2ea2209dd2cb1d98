/**
 * Alidade's own base image, for tasks that name none: a small Debian with what agents and graders reach for. It is made
 * on the user's machine, once, because there may be no image registry to pull it from.
 */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { access, readFile } from "node:fs/promises";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import type Docker from "dockerode";
import { pack } from "tar-stream";
import { z } from "zod";
import { AlidadeError, asAlidadeError, messageOf } from "../../errors.ts";
import { SharedWork } from "../../host/shared-work.ts";
import { dockerClient, isNotFound } from "./client.ts";

/** libstdc++6 is what the Node binaries of the packs need beside glibc. */
const packages = [
  "bash",
  "ca-certificates",
  "coreutils",
  "diffutils",
  "findutils",
  "git",
  "grep",
  "libstdc++6",
  "patch",
  "procps",
  "python3",
  "ripgrep",
  "sed",
];
const left_out = ["/usr/share/man/*", "/usr/share/doc/*", "/usr/share/locale/*"];
const defaultSuite = "bookworm";
const from = `debian:${defaultSuite}-slim`;
const changes = ["ENV LANG=C.UTF-8", "ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 'CMD ["bash"]'];

/** Changes with the definition above, so that a new Alidade never runs on an old base. */
export const baseImage = `alidade/base:${createHash("sha256")
  .update(JSON.stringify([packages, left_out, from, changes]))
  .digest("hex")
  .slice(0, 12)}`;

export type BaseImageOptions = {
  signal: AbortSignal;
  /** One short sentence at a time for people. */
  progress?: (line: string) => void;
};

const building = new SharedWork<void>();

/**
 * Makes the base image unless it is there; returns its tag. 25 to 60 s once per machine, however many ask: the making
 * goes on while one of them waits.
 */
export async function ensureBaseImage({ signal, progress = () => {} }: BaseImageOptions): Promise<string> {
  const docker = await dockerClient();
  if (await hasImage(docker, baseImage)) return baseImage;
  await building.join(signal, (stop) => build(docker, stop, progress));
  return baseImage;
}

export async function hasImage(docker: Docker, image: string): Promise<boolean> {
  try {
    await docker.getImage(image).inspect();
    return true;
  } catch (error) {
    if (isNotFound(error)) return false;
    throw asAlidadeError(error, "sandbox_unavailable", `Asking the Docker engine for image ${image}: `);
  }
}

async function build(docker: Docker, signal: AbortSignal, progress: (line: string) => void): Promise<void> {
  const started = performance.now();
  const attempts: string[] = [];
  const sources = await debianSources();
  if (sources !== null) {
    progress(`Building the base image ${baseImage} with mmdebstrap (about half a minute, once per machine)`);
    try {
      await bootstrap(docker, sources, signal);
      progress(`Built ${baseImage} in ${seconds(started)}`);
      return;
    } catch (error) {
      signal.throwIfAborted();
      attempts.push(`mmdebstrap: ${messageOf(error)}`);
      progress(`mmdebstrap did not work (${messageOf(error)}); trying docker build`);
    }
  }
  progress(`Building the base image ${baseImage} from ${from} (once per machine)`);
  try {
    await dockerBuild(docker, signal, progress);
  } catch (error) {
    signal.throwIfAborted();
    attempts.push(`docker build: ${messageOf(error)}`);
    throw new AlidadeError(
      "sandbox_unavailable",
      `The base image ${baseImage} could not be built (${attempts.join("; ")}). Give the machine access to ${from} or install mmdebstrap, or name an image of your own in the task.`,
      { cause: error },
    );
  }
  progress(`Built ${baseImage} in ${seconds(started)}`);
}

type DebianSources = { suite: string; files: string[] };

/** The host's own package sources where it is a Debian with mmdebstrap; null elsewhere. */
async function debianSources(): Promise<DebianSources | null> {
  const release = await readFile("/etc/os-release", "utf8").catch(() => "");
  if (!/^ID=debian$/m.test(release) || !(await onPath("mmdebstrap"))) return null;
  const suite = /^VERSION_CODENAME=(\w+)$/m.exec(release)?.[1] ?? defaultSuite;
  const files: string[] = [];
  for (const file of ["/etc/apt/sources.list.d/debian.sources", "/etc/apt/sources.list"]) {
    const content = await readFile(file, "utf8").catch(() => "");
    if (/^(Types: |deb )/m.test(content)) files.push(file);
  }
  return { suite, files };
}

/** Streams mmdebstrap's tar straight into the engine: no temporary file, no root file system on our disk. */
export async function bootstrap(docker: Docker, sources: DebianSources, signal: AbortSignal): Promise<void> {
  const memory = await access("/dev/shm").then(
    () => "/dev/shm",
    () => "/tmp",
  );
  const child = spawn(
    "mmdebstrap",
    [
      "--quiet",
      "--variant=minbase",
      `--include=${packages.join(",")}`,
      "--dpkgopt=force-unsafe-io", // the result is a tar stream: nothing to sync
      ...left_out.map((path) => `--dpkgopt=path-exclude=${path}`),
      sources.suite,
      "-",
      ...sources.files,
    ],
    { stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, TMPDIR: memory }, signal },
  );
  const problems = text(child.stderr).catch(() => "");
  const exited = new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  exited.catch(() => {}); // awaited below; an abort may come first
  const [repo, tag] = baseImage.split(":") as [string, string];
  // Imported under a name of its own first: a failed bootstrap leaves a torn tar, which must never get the real tag.
  const torn = `${tag}-${process.pid}`;
  const made = docker.getImage(`${repo}:${torn}`);
  try {
    const answer = await docker.importImage(child.stdout, { repo, tag: torn, changes });
    await text(answer as Readable);
    const code = await exited;
    if (code !== 0) throw new Error(`exit ${code}: ${(await problems).trim().split("\n").slice(-3).join(" ")}`);
    await made.tag({ repo, tag });
  } finally {
    await made.remove().catch(() => {});
  }
}

const BuildEvent = z.looseObject({ stream: z.string().optional(), error: z.string().optional() });

async function dockerBuild(docker: Docker, signal: AbortSignal, progress: (line: string) => void): Promise<void> {
  const dockerfile = [
    `FROM ${from}`,
    "ENV DEBIAN_FRONTEND=noninteractive",
    `RUN apt-get update && apt-get install -y --no-install-recommends ${packages.join(" ")} && rm -rf /var/lib/apt/lists/* ${left_out.join(" ")}`,
    ...changes,
    "",
  ].join("\n");
  const context = pack();
  context.entry({ name: "Dockerfile" }, dockerfile);
  context.finalize();
  const output = await docker.buildImage(Readable.from(context), { t: baseImage, abortSignal: signal });
  // A failed build is not an HTTP error: it is the last event.
  let rest = "";
  for await (const chunk of output) {
    rest += String(chunk);
    const lines = rest.split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line.trim() === "") continue;
      const event = BuildEvent.parse(JSON.parse(line));
      if (event.error !== undefined) throw new Error(event.error);
      if (event.stream?.startsWith("Step ")) progress(event.stream.trim());
    }
  }
}

async function onPath(command: string): Promise<boolean> {
  for (const folder of (process.env.PATH ?? "").split(":")) {
    if (
      await access(`${folder}/${command}`).then(
        () => true,
        () => false,
      )
    )
      return true;
  }
  return false;
}

function seconds(started: number): string {
  return `${((performance.now() - started) / 1000).toFixed(0)} s`;
}
