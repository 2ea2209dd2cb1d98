/**
 * An image of Alidade's own: Debian packages, built once per machine. A Debian host makes the same image from its own package
 * sources where no registry can be reached.
 */
import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import type Docker from "dockerode";
import { AlidadeError, asAlidadeError, messageOf } from "../../../../base/errors.ts";
import { packTar, type TarEntry } from "../../../../base/files/pack-tar.ts";
import { SharedWork } from "../../../../base/host/shared-work.ts";
import type { PrepareOptions } from "../../../sandbox.ts";
import { dockerClient, perEngine } from "../../client.ts";
import { engineEvents } from "../engine-events.ts";
import { hasImage } from "../has-image.ts";
import { bootstrap, debianSources, onlyExactNames } from "./bootstrap.ts";

const defaultSuite = "bookworm";
const from = `debian:${defaultSuite}-slim`;
const changes = ["ENV LANG=C.UTF-8", "ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 'CMD ["bash"]'];

/** `left_out`: globs of files that the packages are unpacked without. */
export type ImageContent = { packages: readonly string[]; left_out: readonly string[] };

export type MadeImage = ImageContent & {
  /** What it is for, as in `base image`. */
  title: string;
  name: string;
  cure: string;
};

/** Changes with what the image is made of, so that a new Alidade never runs on an old one. */
export function madeName(kind: string, { packages, left_out }: ImageContent): string {
  const hash = createHash("sha256").update(JSON.stringify([packages, left_out, from, changes]));
  return `alidade/${kind}:${hash.digest("hex").slice(0, 12)}`;
}

const building = perEngine(() => new Map<string, SharedWork<void>>());

/** Makes the image unless it is there; returns its tag. The making goes on while one of those who asked waits. */
export async function ensureMade(made: MadeImage, { signal, progress = () => {} }: PrepareOptions, engine?: Docker): Promise<string> {
  const docker = engine ?? (await dockerClient());
  if (await hasImage(docker, made.name)) return made.name;
  const works = building(docker);
  const work = works.get(made.name) ?? new SharedWork<void>();
  works.set(made.name, work);
  await work.join(signal, (stop) => build(docker, made, stop, progress));
  return made.name;
}

async function build(docker: Docker, made: MadeImage, signal: AbortSignal, progress: (line: string) => void): Promise<void> {
  const started = performance.now();
  progress(`Building the ${made.title} ${made.name} from ${from} (once per machine)`);
  try {
    await dockerBuild(docker, made, signal, progress);
  } catch (error) {
    signal.throwIfAborted();
    await withoutRegistry(docker, made, messageOf(error), signal, progress);
  }
  progress(`Built ${made.name} in ${seconds(started)}`);
}

async function withoutRegistry(
  docker: Docker,
  { name, title, cure, packages, left_out }: MadeImage,
  reason: string,
  signal: AbortSignal,
  progress: (line: string) => void,
): Promise<void> {
  const sources = await debianSources();
  const failed = `The ${title} ${name} could not be built`;
  if (sources === null)
    throw new AlidadeError("sandbox_unavailable", `${failed} (${reason}). Give the Docker engine access to ${from}, or ${cure}.`);
  progress(`docker build did not work (${reason}); making the image with mmdebstrap`);
  const system = { image: name, packages: [...packages], left_out: [...left_out], changes };
  await bootstrap(docker, system, sources, signal).catch((error: unknown) => {
    throw asAlidadeError(error, "sandbox_unavailable", `${failed} (docker build: ${reason}). mmdebstrap: `);
  });
}

async function dockerBuild(
  docker: Docker,
  { name, packages, left_out }: MadeImage,
  signal: AbortSignal,
  progress: (line: string) => void,
): Promise<void> {
  const dockerfile = [
    `FROM ${from}`,
    "ENV DEBIAN_FRONTEND=noninteractive",
    `RUN apt-get update && apt-get install -y --no-install-recommends -o ${onlyExactNames}=true ${packages.join(" ")} && rm -rf /var/lib/apt/lists/* ${left_out.join(" ")}`,
    ...changes,
    "",
  ].join("\n");
  const content = Buffer.from(dockerfile);
  const root = { uid: 0, gid: 0 };
  const file: TarEntry = { name: "Dockerfile", type: "file", mode: 0o644, owner: root, mtime: new Date(), size: content.length, content };
  const context = Readable.from(packTar([file]), { objectMode: false });
  const output = await docker.buildImage(context, { t: name, abortSignal: signal });
  for await (const { error, stream } of engineEvents(output as AsyncIterable<Buffer>)) {
    if (error !== undefined) throw new Error(error);
    if (stream?.startsWith("Step ")) progress(stream.trim());
  }
}

function seconds(started: number): string {
  return `${((performance.now() - started) / 1000).toFixed(0)} s`;
}
