/** Git on repositories of strangers: their hooks, filters and configuration run nothing, and what is printed is bounded. */
import { spawn } from "node:child_process";
import { devNull } from "node:os";
import { AlidadeError, messageOf } from "../../base/errors.ts";
import { BoundedOutput } from "../../base/host/bounded-output.ts";

export type GitOptions = {
  signal: AbortSignal;
  /** Bytes that it may print; what prints more is ended. */
  most_bytes?: number;
  stdin?: string | Buffer;
  env?: NodeJS.ProcessEnv;
};

/** A listing of a hundred thousand files. */
const usualBytes = 64 * 1024 * 1024;
const errorBytes = 4_000;

/** Where git looks for nothing but the repository that it is given: no configuration of this machine, and no network. */
export const readingOnly: NodeJS.ProcessEnv = {
  PATH: process.env.PATH,
  LC_ALL: "C",
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_CONFIG_GLOBAL: devNull,
  GIT_NO_REPLACE_OBJECTS: "1",
  GIT_NO_LAZY_FETCH: "1",
  // "none" is no protocol, so none is left.
  GIT_ALLOW_PROTOCOL: "none",
};

/**
 * The user's own environment, for a way to a repository may need their keys and helpers. Variables by which git would work on
 * another repository or run a program are left out, and only protocols remain that run none.
 */
export function fetching(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const own = Object.entries(env).filter(([name]) => !name.startsWith("GIT_") || /^GIT_(?:SSH|SSL|HTTP|ASKPASS|PROXY)/.test(name));
  return {
    ...Object.fromEntries(own),
    GIT_ALLOW_PROTOCOL: "file:git:http:https:ssh",
    GIT_NO_LAZY_FETCH: "1",
    GIT_TERMINAL_PROMPT: "0",
  };
}

/** What it prints. Throws `output_too_large` for more than `most_bytes`, and `not_found` where git fails or is not there. */
export async function runGit(
  args: string[],
  { signal, most_bytes = usualBytes, stdin = "", env = readingOnly }: GitOptions,
): Promise<Buffer> {
  const child = spawn("git", ["-c", `core.hooksPath=${devNull}`, ...args], { env, signal, stdio: ["pipe", "pipe", "pipe"] });
  const { promise: ended, resolve, reject } = Promise.withResolvers<number | null>();
  child.once("error", reject).once("close", resolve);
  const [printed, errors] = [new BoundedOutput(most_bytes), new BoundedOutput(errorBytes, "end")];
  printed.follow(child.stdout);
  child.stdout.on("data", () => {
    if (printed.dropped > 0) child.kill("SIGKILL");
  });
  errors.follow(child.stderr);
  // A git that ended early reads no more: how it ended says why.
  child.stdin.on("error", () => undefined);
  child.stdin.end(stdin);
  const code = await ended.catch((error: unknown) => {
    signal.throwIfAborted();
    throw new AlidadeError("not_found", `git could not be run (${messageOf(error)}): install it, version 2.39.4 or later`, {
      cause: error,
    });
  });
  if (printed.dropped > 0) throw new AlidadeError("output_too_large", `git ${args.join(" ")} printed more than ${most_bytes} bytes`);
  if (code !== 0) throw new AlidadeError("not_found", `git ${args.join(" ")} ended with ${code}: ${errors.toString().trim()}`);
  return printed.take();
}
