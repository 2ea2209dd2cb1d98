/** The credentials of a registry, from Docker's own configuration and its helper programs. They go to the engine alone. */
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { messageOf } from "../../../base/errors.ts";
import { readJson } from "../../../base/schema/read-json.ts";

export type RegistryLogin = {
  /** null: pulled without a login. */
  auth: { username: string; password: string; serveraddress: string } | { identitytoken: string; serveraddress: string } | null;
  /** Why a login that is configured could not be read; said where the pull fails. */
  problem: string | null;
};

const Entry = z.looseObject({
  auth: z.string().optional(),
  username: z.string().optional(),
  password: z.string().optional(),
  identitytoken: z.string().optional(),
});

/** `~/.docker/config.json`. https://docs.docker.com/reference/cli/docker/login/ */
const DockerConfig = z.looseObject({
  auths: z.record(z.string(), Entry).default({}),
  credHelpers: z.record(z.string(), z.string()).default({}),
  credsStore: z.string().optional(),
});

const HelperAnswer = z.looseObject({ Username: z.string(), Secret: z.string() });

/** The name under which Docker keeps the login of its own registry. */
const hubServer = "https://index.docker.io/v1/";
/** A helper may ask a person, or a cloud for a new token. */
const helperMs = 60_000;
const maxAnswer = 1_000_000;

/** `host`: as it stands in an image's name; `docker.io` where it has none. The helper of the host comes first, then the store, then the file. */
export async function registryLogin(host: string, env: Record<string, string | undefined>, signal: AbortSignal): Promise<RegistryLogin> {
  const file = join(env.DOCKER_CONFIG || join(homedir(), ".docker"), "config.json");
  try {
    const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return "{}";
      throw error;
    });
    const config = DockerConfig.parse(readJson(text));
    const server = host === "docker.io" ? hubServer : host;
    const helper = byHost(config.credHelpers, host) ?? config.credsStore;
    const auth = helper ? await askHelper(helper, server, env, signal) : fromEntry(byHost(config.auths, host), server);
    return { auth, problem: null };
  } catch (error) {
    signal.throwIfAborted();
    // A message may quote the file, and with it a password.
    const why = error instanceof SyntaxError || error instanceof z.ZodError ? "it is not in Docker's form" : messageOf(error);
    return { auth: null, problem: `the login in ${file} could not be read (${why})` };
  }
}

/** Keys are hosts or addresses (`https://ghcr.io/v1/`). */
function byHost<T>(entries: Record<string, T>, host: string): T | undefined {
  return Object.entries(entries).find(([key]) => hostOf(key) === host)?.[1];
}

function hostOf(key: string): string {
  const host = key.replace(/^https?:\/\//, "").replace(/\/.*$/s, "");
  return host === "index.docker.io" || host === "registry-1.docker.io" ? "docker.io" : host;
}

function fromEntry(entry: z.infer<typeof Entry> | undefined, serveraddress: string): RegistryLogin["auth"] {
  if (entry === undefined) return null;
  if (entry.identitytoken) return { identitytoken: entry.identitytoken, serveraddress };
  const [, user, secret] =
    /^([^:]*):(.*)$/s.exec(
      Buffer.from(entry.auth ?? "", "base64")
        .toString("utf8")
        .replace(/\0+$/, ""),
    ) ?? [];
  const username = user ?? entry.username;
  const password = secret ?? entry.password;
  return username && password ? { username, password, serveraddress } : null;
}

/** https://github.com/docker/docker-credential-helpers: the server's name goes in, JSON comes out. */
async function askHelper(
  name: string,
  server: string,
  env: Record<string, string | undefined>,
  signal: AbortSignal,
): Promise<RegistryLogin["auth"]> {
  if (!/^[\w.-]+$/.test(name)) throw new Error(`${JSON.stringify(name)} is no name of a credential helper`);
  const program = `docker-credential-${name}`;
  const { text, failed } = await new Promise<{ text: string; failed: Error | null }>((resolve) => {
    const options = { env: env as NodeJS.ProcessEnv, timeout: helperMs, maxBuffer: maxAnswer, signal };
    const child = execFile(program, ["get"], options, (failed, text) => resolve({ text, failed }));
    child.stdin?.on("error", () => {}); // one that ends before it read
    child.stdin?.end(server);
  });
  if (failed !== null && /credentials not found/i.test(text)) return null;
  // Its output may be a secret.
  if (failed !== null) throw new Error(`${program} ${(failed as NodeJS.ErrnoException).code === "ENOENT" ? "is not installed" : "failed"}`);
  const { Username, Secret } = HelperAnswer.parse(readJson(text));
  return Username === "<token>"
    ? { identitytoken: Secret, serveraddress: server }
    : { username: Username, password: Secret, serveraddress: server };
}
