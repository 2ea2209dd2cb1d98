/**
 * Alidade's own base image, for tasks that name none: a small Debian with what agents and graders reach for. It is built
 * once per machine.
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
import { bootstrap, debianSources } from "./bootstrap.ts";

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

const building = perEngine(() => new SharedWork<void>());

/**
 * Makes the base image unless it is there; returns its tag. 25 to 60 s once per engine, however many ask: the making
 * goes on while one of them waits. `engine`: default, that of this machine.
 */
export async function ensureBaseImage({ signal, progress = () => {} }: PrepareOptions, engine?: Docker): Promise<string> {
  const docker = engine ?? (await dockerClient());
  if (await hasImage(docker, baseImage)) return baseImage;
  await building(docker).join(signal, (stop) => build(docker, stop, progress));
  return baseImage;
}

async function build(docker: Docker, signal: AbortSignal, progress: (line: string) => void): Promise<void> {
  const started = performance.now();
  progress(`Building the base image ${baseImage} from ${from} (once per machine)`);
  try {
    await dockerBuild(docker, signal, progress);
  } catch (error) {
    signal.throwIfAborted();
    await withoutRegistry(docker, messageOf(error), signal, progress);
  }
  progress(`Built ${baseImage} in ${seconds(started)}`);
}

/** A Debian host makes the same image from its own package sources where no registry can be reached. */
async function withoutRegistry(docker: Docker, reason: string, signal: AbortSignal, progress: (line: string) => void): Promise<void> {
  const sources = await debianSources();
  if (sources === null)
    throw new AlidadeError(
      "sandbox_unavailable",
      `The base image ${baseImage} could not be built (${reason}). Give the Docker engine access to ${from}, or name an image of your own in the task (environment.image).`,
    );
  progress(`docker build did not work (${reason}); making the image with mmdebstrap, in about half a minute`);
  await bootstrap(docker, { image: baseImage, packages, left_out, changes }, sources, signal).catch((error: unknown) => {
    throw asAlidadeError(
      error,
      "sandbox_unavailable",
      `The base image ${baseImage} could not be built (docker build: ${reason}). mmdebstrap: `,
    );
  });
}

async function dockerBuild(docker: Docker, signal: AbortSignal, progress: (line: string) => void): Promise<void> {
  const dockerfile = [
    `FROM ${from}`,
    "ENV DEBIAN_FRONTEND=noninteractive",
    `RUN apt-get update && apt-get install -y --no-install-recommends ${packages.join(" ")} && rm -rf /var/lib/apt/lists/* ${left_out.join(" ")}`,
    ...changes,
    "",
  ].join("\n");
  const content = Buffer.from(dockerfile);
  const root = { uid: 0, gid: 0 };
  const file: TarEntry = { name: "Dockerfile", type: "file", mode: 0o644, owner: root, mtime: new Date(), size: content.length, content };
  const context = Readable.from(packTar([file]), { objectMode: false });
  const output = await docker.buildImage(context, { t: baseImage, abortSignal: signal });
  for await (const { error, stream } of engineEvents(output as AsyncIterable<Buffer>)) {
    if (error !== undefined) throw new Error(error);
    if (stream?.startsWith("Step ")) progress(stream.trim());
  }
}

function seconds(started: number): string {
  return `${((performance.now() - started) / 1000).toFixed(0)} s`;
}
