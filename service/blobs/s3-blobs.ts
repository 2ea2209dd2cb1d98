/**
 * Blobs as objects of a bucket: Amazon S3, or a server that speaks as it does (MinIO, Ceph, R2). Credentials, region and the
 * server's URL come from the variables that Amazon's own tools read:
 * https://docs.aws.amazon.com/sdkref/latest/guide/environment-variables.html
 */
import { hash } from "node:crypto";
import { basename } from "node:path/posix";
import { AwsClient } from "aws4fetch";
import { AlidadeError } from "../../base/errors.ts";
import { Limiter } from "../../base/host/limiter.ts";
import { askAgain, bytesOf, toRead, toWrite } from "./ask-again.ts";
import type { OwnBlobs } from "./blobs.ts";
import { assertKey, assertName, isLogUpTo, logsFolder } from "./keys.ts";
import { spool } from "./spool.ts";

/** Most pages of 1000 keys. A rollout has one or two blobs, so more pages mean that the store still lists removed keys. */
const mostPages = 100;

/** Few enough for a node of many rollouts, which also has connections for its uploads. */
const removedAtOnce = 20;

/** Amazon answers 403 for a missing object, unless the key may list the bucket. */
const neededRights =
  "The key needs s3:GetObject, s3:PutObject and s3:DeleteObject on the objects, and s3:ListBucket on the bucket: without the last a missing object is refused like a forbidden one";

type BlobVerb = "read" | "write" | "list" | "remove";

export class S3Blobs implements OwnBlobs {
  readonly place: string;
  readonly #bucket: string;
  /** With a slash behind it, where there is one. */
  readonly #prefix: string;
  readonly #client: AwsClient;

  /** `url`: `s3://bucket/prefix`. Throws `config_invalid` for another one, and where a variable is missing. */
  constructor(url: string, env: Record<string, string | undefined>) {
    const [, bucket, prefix = ""] = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/([\w./-]*))?$/.exec(url) ?? [];
    if (bucket === undefined || prefix.split("/").includes("..")) throw invalid(`${url} is no s3://bucket/prefix`);
    const region = env.AWS_REGION || env.AWS_DEFAULT_REGION || "us-east-1";
    this.place = url;
    this.#bucket = serverOf(bucket, region, env);
    this.#prefix = prefix
      .split("/")
      .filter(Boolean)
      .map((part) => `${part}/`)
      .join("");
    this.#client = new AwsClient({
      accessKeyId: needed(env, "AWS_ACCESS_KEY_ID", url),
      secretAccessKey: needed(env, "AWS_SECRET_ACCESS_KEY", url),
      ...(env.AWS_SESSION_TOKEN && { sessionToken: env.AWS_SESSION_TOKEN }),
      service: "s3",
      region,
      retries: 0,
    });
  }

  async put(key: string, bytes: Uint8Array, signal?: AbortSignal): Promise<void> {
    // The server refuses a body that is another one than was signed.
    const headers = { "x-amz-content-sha256": hash("sha256", bytes), "content-type": "application/octet-stream" };
    const response = await this.#ask("write", key, { method: "PUT", headers, body: Buffer.from(bytes) }, signal);
    if (!response.ok) throw await this.#refusal("write", key, response);
    await response.body?.cancel();
  }

  /** Amazon's wants the length and the hash before the first byte. */
  async putPieces(key: string, pieces: AsyncIterable<Uint8Array>, signal?: AbortSignal): Promise<void> {
    assertKey(key);
    await using kept = await spool(pieces);
    const headers = { "x-amz-content-sha256": kept.sha256, "content-type": "application/octet-stream" };
    const response = await this.#ask("write", key, { method: "PUT", headers, body: kept.bytes }, signal);
    if (!response.ok) throw await this.#refusal("write", key, response);
    await response.body?.cancel();
  }

  async get(key: string, patient?: AbortSignal): Promise<Buffer | null> {
    const response = await this.#ask("read", key, { method: "GET" }, patient);
    if (response.ok) return Buffer.from(await response.arrayBuffer());
    const refusal = await this.#refusal("read", key, response);
    if (response.status === 404 && !/NoSuchBucket/.test(refusal.message)) return null;
    throw refusal;
  }

  async removeLogs(name: string, attempt: number, signal?: AbortSignal): Promise<void> {
    assertName(name);
    await this.#removeAll(`${name}/${logsFolder}`, (key) => isLogUpTo(basename(key), attempt), signal);
  }

  async removeBelow(name: string, kept: string | null = null, signal?: AbortSignal): Promise<void> {
    assertName(name);
    await this.#removeAll(name, (key) => key !== this.#prefix + kept, signal);
  }

  async #removeAll(name: string, isGone: (key: string) => boolean, signal?: AbortSignal): Promise<void> {
    const query = new URLSearchParams({ "list-type": "2", prefix: `${this.#prefix}${name}/`, "max-keys": "1000" });
    for (let page = 0; page < mostPages; page += 1) {
      const response = await this.#send("list", `${name}/`, `${this.#bucket}?${query}`, { method: "GET" }, signal);
      if (!response.ok) throw await this.#refusal("list", `${name}/`, response);
      const text = await response.text();
      const keys = [...text.matchAll(/<Key>([^<]*)<\/Key>/g)].map(([, key = ""]) => key);
      const gone = keys.filter(isGone);
      if (gone.length === 0) {
        if (!/<IsTruncated>true</.test(text)) return;
        query.set("start-after", keys.at(-1) ?? "");
      }
      await this.#removeEach(gone, signal);
    }
    throw new AlidadeError("store_error", `cannot remove ${this.place}/${name}/: what was removed is listed again and again`);
  }

  /** Stops at the first failure: a server that refuses one key, or is away, fails for each of them. */
  async #removeEach(keys: readonly string[], signal?: AbortSignal): Promise<void> {
    const failed = new AbortController();
    const until = signal ? AbortSignal.any([signal, failed.signal]) : failed.signal;
    const removals = new Limiter(removedAtOnce);
    const each = keys.map((key) => removals.run(until, () => this.#remove(key, until)));
    for (const one of each) one.catch((error: unknown) => failed.abort(error));
    await Promise.allSettled(each);
    signal?.throwIfAborted();
    failed.signal.throwIfAborted();
  }

  async #remove(key: string, stop: AbortSignal): Promise<void> {
    const response = await this.#send("remove", key, `${this.#bucket}/${key}`, { method: "DELETE" }, stop);
    if (!response.ok && response.status !== 404) throw await this.#refusal("remove", key, response);
    await response.body?.cancel();
  }

  #ask(verb: "read" | "write", key: string, init: RequestInit, stop?: AbortSignal): Promise<Response> {
    assertKey(key);
    return this.#send(verb, key, `${this.#bucket}/${this.#prefix}${key}`, init, stop);
  }

  #send(verb: BlobVerb, key: string, url: string, init: RequestInit, stop?: AbortSignal): Promise<Response> {
    const send = (signal: AbortSignal) => this.#client.fetch(url, { ...init, redirect: "error", signal });
    const isPatient = verb === "write" || (verb === "read" && stop !== undefined);
    return askAgain(`cannot ${verb} ${this.place}/${key}`, isPatient ? toWrite(bytesOf(init)) : toRead, send, stop);
  }

  async #refusal(verb: BlobVerb, key: string, response: Response): Promise<AlidadeError> {
    const text = await response.text().catch(() => "");
    const code = /<Code>([^<]*)<\/Code>/.exec(text)?.[1] ?? "";
    const message = /<Message>([^<]*)<\/Message>/.exec(text)?.[1] ?? "";
    const why = [`HTTP ${response.status}`, code, message].filter(Boolean).join(" ").slice(0, 500);
    const cure = response.status === 403 && code !== "InvalidAccessKeyId" && code !== "SignatureDoesNotMatch" ? `. ${neededRights}` : "";
    return new AlidadeError("store_error", `cannot ${verb} ${this.place}/${key}: ${why}${cure}`);
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
