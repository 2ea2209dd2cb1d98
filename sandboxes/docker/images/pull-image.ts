/** Pulls an image, with the credentials that Docker would use, and again where the registry says that it passes. */
import { setTimeout as sleep } from "node:timers/promises";
import type Docker from "dockerode";
import { AlidadeError, messageOf } from "../../../base/errors.ts";
import type { ImageParts } from "../../../base/schema/environment/image-name.ts";
import type { PrepareOptions } from "../../sandbox.ts";
import { engineEvents } from "./engine-events.ts";
import { parseImageName } from "./image-name.ts";
import { type RegistryLogin, registryLogin } from "./registry-login.ts";

export type PullOptions = PrepareOptions & {
  /** The time between two tries; by the clock where left out. Rejects when the signal fires. */
  pause?: (milliseconds: number, signal: AbortSignal) => Promise<unknown>;
  /** Where Docker's configuration and its helpers are found; the process's where left out. */
  env?: Record<string, string | undefined>;
};

const byTheClock: NonNullable<PullOptions["pause"]> = (milliseconds, signal) => sleep(milliseconds, undefined, { signal });

/** Docker Hub counts by the hour or by six; most others by the minute. */
const rateLimitedMs = [5_000, 10_000, 20_000, 40_000, 60_000];
/** What a restart of a registry or of a network takes. */
const unreachableMs = [1_000, 4_000];
/** An engine reports every second while bytes come. */
const silenceMs = 300_000;

/** `image` with a tag or digest; `latest` where it has none. Throws `image_pull_failed`, which says what would help. */
export async function pullImage(docker: Docker, image: string, platform: string | null, options: PullOptions): Promise<void> {
  const { signal, progress = () => {}, pause = byTheClock, env = process.env } = options;
  const name = parseImageName(image);
  const login = await registryLogin(name.host, env, signal);
  const started = performance.now();
  progress(`Pulling ${image}`);
  const waits = { limited: [...rateLimitedMs], unreachable: [...unreachableMs] };
  for (;;) {
    const error = await pullOnce(docker, name, platform, login, { signal, progress: (text) => progress(`Pulling ${image}: ${text}`) });
    if (error === null) break;
    signal.throwIfAborted();
    const kind = kindOf(error);
    const wait = kind === "refused" ? undefined : waits[kind].shift();
    if (wait === undefined) throw failed(image, name, login, error);
    progress(`Pulling ${image}: ${error}; trying again in ${wait / 1000} s`);
    await pause(wait, signal);
  }
  progress(`Pulled ${image} in ${((performance.now() - started) / 1000).toFixed(0)} s`);
}

/** null: it is here. Otherwise what the engine said. */
async function pullOnce(
  docker: Docker,
  { repository, tag }: ImageParts,
  platform: string | null,
  { auth }: RegistryLogin,
  { signal, progress }: Required<Omit<PrepareOptions, "user" | "space">>,
): Promise<string | null> {
  const silence = new AbortController();
  const timer = setTimeout(() => silence.abort(), silenceMs);
  try {
    const abortSignal = AbortSignal.any([signal, silence.signal]);
    const options = { fromImage: repository, tag, ...(platform !== null && { platform }), abortSignal };
    const output = (await docker.createImage(auth ?? undefined, options)) as unknown as AsyncIterable<Buffer>;
    const shown = new PullProgress(progress);
    for await (const event of engineEvents(output)) {
      timer.refresh();
      if (event.error !== undefined) return event.error;
      shown.add(event);
    }
    return null;
  } catch (error) {
    return silence.signal.aborted ? `timeout: nothing came for ${silenceMs / 1000} s` : wordsOf(error);
  } finally {
    clearTimeout(timer);
  }
}

/** Without what dockerode puts in front: the engine's status is always 500 here. */
function wordsOf(error: unknown): string {
  return messageOf(error)
    .replace(/^\(HTTP code \d+\) [\w ]+ - /, "")
    .trim();
}

/** A line for each of these. */
const showEveryBytes = 64 * 1024 * 1024;

/** Adds up the layers' bytes. */
class PullProgress {
  readonly #layers = new Map<string, { current: number; total: number }>();
  readonly #progress: (text: string) => void;
  #next = showEveryBytes;

  constructor(progress: (text: string) => void) {
    this.#progress = progress;
  }

  add({
    status,
    id,
    progressDetail,
  }: {
    status?: string | undefined;
    id?: string | undefined;
    progressDetail?: { current?: number | undefined; total?: number | undefined } | null | undefined;
  }): void {
    if (status !== "Downloading" || id === undefined || !progressDetail) return;
    const { current = 0, total = 0 } = progressDetail;
    this.#layers.set(id, { current, total: Math.max(current, total) });
    const layers = [...this.#layers.values()];
    const done = layers.reduce((sum, layer) => sum + layer.current, 0);
    if (done < this.#next) return;
    this.#next = done + showEveryBytes;
    const known = layers.reduce((sum, layer) => sum + layer.total, 0);
    this.#progress(`${Math.round(done / 1e6)} of at least ${Math.round(known / 1e6)} MB`);
  }
}

/** Engines pass on a registry's words, and no status. */
function kindOf(error: string): "limited" | "unreachable" | "refused" {
  if (/toomanyrequests|too many requests|rate limit|\b429\b/i.test(error)) return "limited";
  const passes =
    /timeout|timed out|connection (?:refused|reset)|broken pipe|unexpected EOF|\bEOF$|\b50[0234]\b|bad gateway|service unavailable|temporar/i;
  return passes.test(error) ? "unreachable" : "refused";
}

function failed(image: string, { host }: ImageParts, { auth, problem }: RegistryLogin, error: string): AlidadeError {
  const who = auth === null ? `without a login${problem === null ? "" : `: ${problem}`}` : "with the login of Docker's own configuration";
  return new AlidadeError(
    "image_pull_failed",
    `The image ${JSON.stringify(image)} is not on this Docker engine and could not be pulled from ${host} (${who}): ${error}. Pull it (docker pull ${image}) or build it (docker build -t ${image} .) here, log in (docker login ${host}), or change environment.image.`,
    { param: "environment.image" },
  );
}
