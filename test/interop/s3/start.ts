/** A server of S3's API, with one bucket. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { cachePlace, hashOf, isReady } from "../place.ts";

function s3Place(): string {
  return cachePlace("s3", hashOf(import.meta.dirname, ["package-lock.json"]));
}

export async function s3Missing(): Promise<string | null> {
  return isReady(s3Place()) ? null : "no s3rver of the pinned version is installed";
}

/** `env`: what Amazon's tools read. */
export type S3Server = AsyncDisposable & {
  env: Record<string, string>;
  bucket: string;
  kill: () => Promise<void>;
  restart: () => Promise<void>;
};

/** `folder`: where its objects lie. It can be killed, and started again at its port. */
export async function startS3(folder: string): Promise<S3Server> {
  const bucket = "rollouts";
  const start = (port: number) => {
    const child = spawn(
      process.execPath,
      [
        join(s3Place(), "node_modules/s3rver/bin/s3rver.js"),
        "-d",
        folder,
        "-a",
        "127.0.0.1",
        "-p",
        String(port),
        "--configure-bucket",
        bucket,
      ],
      { stdio: ["ignore", "pipe", "ignore"] },
    );
    child.on("error", () => undefined);
    return child;
  };
  const listens = async (child: ReturnType<typeof start>): Promise<number> => {
    for await (const line of createInterface({ input: child.stdout })) {
      const port = /listening on 127\.0\.0\.1:(\d+)/.exec(line)?.[1];
      if (port === undefined) continue;
      child.stdout.resume();
      return Number(port);
    }
    throw new Error("s3rver ended before it listened");
  };
  let child = start(0);
  const port = await listens(child);
  const kill = async (): Promise<void> => {
    child.kill("SIGKILL");
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  };
  const env = { AWS_ENDPOINT_URL_S3: `http://127.0.0.1:${port}`, AWS_ACCESS_KEY_ID: "S3RVER", AWS_SECRET_ACCESS_KEY: "S3RVER" };
  const restart = async (): Promise<void> => {
    child = start(port);
    await listens(child);
  };
  return { env, bucket, kill, restart, [Symbol.asyncDispose]: kill };
}
