/**
 * A registry on loopback that refuses as real ones do at their limits. Engines speak plain HTTP to 127.0.0.0/8.
 * https://distribution.github.io/distribution/spec/api/
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type Blob, smallImage } from "./small-image.ts";

export type RegistryOptions = {
  /** The first of so many questions for the manifest are answered with 429. */
  limited?: number;
  /** Gives nothing but to `me:secret`. */
  login?: boolean;
};

export class ScriptedRegistry implements AsyncDisposable {
  readonly #server: Server;
  readonly #blobs: Map<string, Blob>;
  readonly #manifest: Blob;
  #limited: number;
  readonly #login: boolean;
  /** How often the tag was resolved, refused questions included, and how often the layer was read. */
  readonly seen = { manifests: 0, layers: 0 };

  private constructor(blobs: Blob[], manifest: Blob, { limited = 0, login = false }: RegistryOptions) {
    this.#blobs = new Map(blobs.map((blob) => [blob.digest, blob]));
    this.#manifest = manifest;
    this.#limited = limited;
    this.#login = login;
    this.#server = createServer((request, response) => this.#answer(request, response));
  }

  static async start(options: RegistryOptions = {}): Promise<ScriptedRegistry> {
    const { layer, config, manifest } = await smallImage();
    const registry = new ScriptedRegistry([layer, config], manifest, options);
    await new Promise<void>((resolve) => registry.#server.listen(0, "127.0.0.1", resolve));
    return registry;
  }

  /** As it stands in the image's name. */
  get host(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** The image's name; every other one is unknown. */
  get image(): string {
    return `${this.host}/team/small:1`;
  }

  get digest(): string {
    return this.#manifest.digest;
  }

  get layers(): number {
    return this.seen.layers;
  }

  #answer({ url = "", headers, method }: IncomingMessage, response: ServerResponse): unknown {
    const refuse = (status: number, code: string, more: Record<string, string> = {}) =>
      response
        .writeHead(status, { "content-type": "application/json", ...more })
        .end(JSON.stringify({ errors: [{ code, message: code }] }));
    if (this.#login && headers.authorization !== `Basic ${Buffer.from("me:secret").toString("base64")}`)
      return refuse(401, "UNAUTHORIZED", { "www-authenticate": `Basic realm="test"` });
    if (url === "/v2/") return response.writeHead(200).end("{}");
    const [, kind, reference = ""] = /^\/v2\/team\/small\/(manifests|blobs)\/([\w:]+)$/.exec(url) ?? [];
    if (kind === "manifests" && ["1", this.digest].includes(reference)) {
      this.seen.manifests += 1;
      if (this.#limited-- > 0) return refuse(429, "TOOMANYREQUESTS");
      return send(response, this.#manifest, method);
    }
    const blob = kind === "blobs" ? this.#blobs.get(reference) : undefined;
    if (blob === undefined) return refuse(404, "MANIFEST_UNKNOWN");
    if (blob.type.includes("rootfs")) this.seen.layers += 1;
    return send(response, blob, method);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }
}

function send(response: ServerResponse, { type, bytes, digest }: Blob, method: string | undefined): void {
  response.writeHead(200, { "content-type": type, "content-length": bytes.length, "docker-content-digest": digest });
  response.end(method === "HEAD" ? undefined : bytes);
}
