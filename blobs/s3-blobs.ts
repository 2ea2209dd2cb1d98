/**
 * Blobs as objects of a bucket: Amazon S3, or a server that speaks as it does (MinIO, Ceph, R2). Credentials, region and the
 * server's URL come from the variables that Amazon's own tools read:
 * https://docs.aws.amazon.com/sdkref/latest/guide/environment-variables.html
 */
import { hash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { AwsClient } from "aws4fetch";
import { AlidadeError, messageOf } from "../errors.ts";
import type { Blobs } from "./blobs.ts";
import { assertKey } from "./keys.ts";

/** A request of some megabytes takes seconds on a slow way; one that takes this long is dead. */
const requestMs = 60_000;
/** A finished rollout waits for it: a server that was started again answers within these. */
const tries = 5;
const firstPauseMs = 250;

export class S3Blobs implements Blobs {
  readonly place: string;
  readonly #base: string;
  readonly #client: AwsClient;

  /** `url`: `s3://bucket/prefix`. Throws `config_invalid` for another one, and where a variable is missing. */
  constructor(url: string, env: Record<string, string | undefined>) {
    const [, bucket, prefix = ""] = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/([\w./-]*))?$/.exec(url) ?? [];
    if (bucket === undefined || prefix.split("/").includes("..")) throw invalid(`${url} is no s3://bucket/prefix`);
    const region = env.AWS_REGION || env.AWS_DEFAULT_REGION || "us-east-1";
    this.place = url;
    this.#base = [serverOf(bucket, region, env), ...prefix.split("/").filter(Boolean)].join("/");
    this.#client = new AwsClient({
      accessKeyId: needed(env, "AWS_ACCESS_KEY_ID", url),
      secretAccessKey: needed(env, "AWS_SECRET_ACCESS_KEY", url),
      ...(env.AWS_SESSION_TOKEN && { sessionToken: env.AWS_SESSION_TOKEN }),
      service: "s3",
      region,
      retries: 0,
    });
  }

  async put(key: string, bytes: Uint8Array): Promise<void> {
    // The server refuses a body that is another one than was signed.
    const headers = { "x-amz-content-sha256": hash("sha256", bytes), "content-type": "application/octet-stream" };
    const response = await this.#ask("write", key, { method: "PUT", headers, body: Buffer.from(bytes) });
    if (!response.ok) throw await this.#refusal("write", key, response);
    await response.body?.cancel();
  }

  async get(key: string): Promise<Buffer | null> {
    const response = await this.#ask("read", key, { method: "GET" });
    if (response.ok) return Buffer.from(await response.arrayBuffer());
    const refusal = await this.#refusal("read", key, response);
    if (response.status === 404 && !/NoSuchBucket/.test(refusal.message)) return null;
    throw refusal;
  }

  /** Asked again where the server is away or says that it is busy. */
  async #ask(verb: "read" | "write", key: string, init: RequestInit): Promise<Response> {
    assertKey(key);
    for (let turn = 1; ; turn += 1) {
      const answer = await this.#client
        .fetch(`${this.#base}/${key}`, { ...init, redirect: "error", signal: AbortSignal.timeout(requestMs) })
        .catch((error: unknown) => this.#failure(verb, key, messageOf((error as Error).cause ?? error), error));
      const isAway = answer instanceof AlidadeError || answer.status >= 500 || answer.status === 429;
      if (isAway && turn < tries) {
        await sleep(firstPauseMs * 2 ** (turn - 1));
        continue;
      }
      if (answer instanceof AlidadeError) throw answer;
      return answer;
    }
  }

  async #refusal(verb: "read" | "write", key: string, response: Response): Promise<AlidadeError> {
    const text = await response.text().catch(() => "");
    const code = /<Code>([^<]*)<\/Code>/.exec(text)?.[1] ?? "";
    const message = /<Message>([^<]*)<\/Message>/.exec(text)?.[1] ?? "";
    return this.#failure(verb, key, [`HTTP ${response.status}`, code, message].filter(Boolean).join(" "));
  }

  #failure(verb: "read" | "write", key: string, why: string, cause?: unknown): AlidadeError {
    return new AlidadeError("store_error", `cannot ${verb} ${this.place}/${key}: ${why.slice(0, 500)}`, { cause });
  }
}

/** Another server than Amazon's has the bucket in the path; Amazon's has it in the name, which takes no dots of its own under TLS. */
function serverOf(bucket: string, region: string, env: Record<string, string | undefined>): string {
  const endpoint = env.AWS_ENDPOINT_URL_S3 || env.AWS_ENDPOINT_URL;
  if (endpoint) {
    if (!/^https?:$/.test(URL.parse(endpoint)?.protocol ?? "")) throw invalid(`AWS_ENDPOINT_URL_S3 is ${endpoint}: give an http(s) URL`);
    return `${endpoint.replace(/\/+$/, "")}/${bucket}`;
  }
  return bucket.includes(".") ? `https://s3.${region}.amazonaws.com/${bucket}` : `https://${bucket}.s3.${region}.amazonaws.com`;
}

function needed(env: Record<string, string | undefined>, name: string, url: string): string {
  const value = env[name];
  if (value) return value;
  throw invalid(`${url} needs ${name}, which is not set: put the key of its owner into AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY`);
}

function invalid(message: string): AlidadeError {
  return new AlidadeError("config_invalid", `--trajectories: ${message}`, { param: "trajectories" });
}
