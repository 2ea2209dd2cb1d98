/** An image from a Debian host's own package sources, for machines that reach no image registry. */
import { spawn } from "node:child_process";
import { access, readFile } from "node:fs/promises";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import type Docker from "dockerode";
import { imageAt } from "../image-at.ts";

export type DebianSources = { suite: string; files: string[] };

/** The host's own package sources where it is a Debian with mmdebstrap; null elsewhere. */
export async function debianSources(): Promise<DebianSources | null> {
  const release = await readFile("/etc/os-release", "utf8").catch(() => "");
  if (!/^ID=debian$/m.test(release) || !(await isOnPath("mmdebstrap"))) return null;
  const suite = /^VERSION_CODENAME=(\w+)$/m.exec(release)?.[1] ?? "stable";
  const files: string[] = [];
  for (const file of ["/etc/apt/sources.list.d/debian.sources", "/etc/apt/sources.list"]) {
    const content = await readFile(file, "utf8").catch(() => "");
    if (/^(Types: |deb )/m.test(content)) files.push(file);
  }
  return { suite, files };
}

export type System = {
  /** The name that the image gets. */
  image: string;
  packages: string[];
  /** Globs of files that the packages are unpacked without. */
  left_out: string[];
  /** Dockerfile lines: ENV, CMD. */
  changes: string[];
};

/** Without it apt takes the name of a package that is not there for a pattern, and installs all that it matches. */
export const onlyExactNames = "APT::Cmd::Pattern-Only";

/** Streams mmdebstrap's tar straight into the engine: no temporary file, no root file system on our disk. */
export async function bootstrap(docker: Docker, system: System, sources: DebianSources, signal: AbortSignal): Promise<void> {
  const { image, packages, left_out, changes } = system;
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
      `--aptopt=${onlyExactNames} "true"`,
      '--customize-hook=rm "$1/etc/apt/apt.conf.d/99mmdebstrap"', // it would hold for the image's own apt
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
  const [repo, tag] = image.split(":") as [string, string];
  // Imported under a name of its own first: a failed bootstrap leaves a torn tar, which must never get the real tag.
  const torn = `${tag}-${process.pid}`;
  const made = imageAt(docker, `${repo}:${torn}`);
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

async function isOnPath(command: string): Promise<boolean> {
  const found = (process.env.PATH ?? "").split(":").map((folder) => access(`${folder}/${command}`));
  return Promise.any(found).then(
    () => true,
    () => false,
  );
}
