/** Debian's `docker-registry` (the reference implementation) with one small image, and its own record of requests. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { quietPort } from "../../quiet-port.ts";
import { until } from "../machine/until.ts";
import { type Blob, type SmallImage, smallImage } from "./small-image.ts";

/** What is missing for it, in a few words; null: it can be started here. */
export async function debianRegistryMissing(): Promise<string | null> {
  return promisify(execFile)("docker-registry", ["--version"]).then(
    () => null,
    () => "no docker-registry on the path",
  );
}

/** `me:secret`, as `htpasswd -B` writes it. */
const login = {
  header: `Basic ${Buffer.from("me:secret").toString("base64")}`,
  line: "me:$2y$04$wpIs.7TvJ8W0p7xECT65ReAKU6DdQmaUp.wByNPh5AxR/D7uQO3CK",
};

export type DebianRegistryOptions = {
  /** Gives nothing but to `me:secret`. */
  login?: boolean;
  /** The address it listens at; loopback by default, to which engines speak plain HTTP. */
  address?: string;
  port?: number;
};

export class DebianRegistry implements AsyncDisposable {
  /** As it stands in the image's name. */
  readonly host: string;
  readonly #folder: string;
  readonly #process: ChildProcess;
  readonly #image: SmallImage;
  #said = "";

  private constructor(host: string, folder: string, image: SmallImage) {
    this.host = host;
    this.#folder = folder;
    this.#image = image;
    this.#process = spawn("docker-registry", ["serve", join(folder, "config.yml")], { stdio: ["ignore", "pipe", "ignore"] });
    this.#process.stdout?.on("data", (chunk) => {
      this.#said += chunk;
    });
  }

  static async start(options: DebianRegistryOptions = {}): Promise<DebianRegistry> {
    const folder = mkdtempSync(join(tmpdir(), "alidade-registry-"));
    const host = `${options.address ?? "127.0.0.1"}:${options.port ?? (await quietPort())}`;
    const auth = options.login ? { auth: { htpasswd: { realm: "test", path: join(folder, "htpasswd") } } } : {};
    const storage = { filesystem: { rootdirectory: join(folder, "data") } };
    writeFileSync(join(folder, "htpasswd"), `${login.line}\n`);
    writeFileSync(
      join(folder, "config.yml"),
      JSON.stringify({ version: "0.1", log: { level: "error" }, storage, http: { addr: host }, ...auth }),
    );
    const registry = new DebianRegistry(host, folder, await smallImage());
    await until(() => registry.#answers());
    await registry.#fill();
    return registry;
  }

  get image(): string {
    return `${this.host}/team/small:1`;
  }

  get digest(): string {
    return this.#image.manifest.digest;
  }

  /** How often it gave the layer, by its own record. */
  get layers(): number {
    return this.#said
      .split("\n")
      .filter((line) => line.includes(`GET /v2/team/small/blobs/${this.#image.layer.digest} `) && / 200 /.test(line)).length;
  }

  /** https://distribution.github.io/distribution/spec/api/ */
  async #fill(): Promise<void> {
    const { layer, config, manifest } = this.#image;
    for (const blob of [layer, config]) {
      const begun = await this.#ask("POST", "/v2/team/small/blobs/uploads/");
      const place = new URL(begun.headers.get("location") ?? "");
      place.searchParams.set("digest", blob.digest);
      await this.#ask("PUT", `${place.pathname}${place.search}`, blob);
    }
    await this.#ask("PUT", "/v2/team/small/manifests/1", manifest);
  }

  async #ask(method: string, path: string, blob?: Blob): Promise<Response> {
    const headers = {
      authorization: login.header,
      ...(blob && { "content-type": path.includes("manifests") ? blob.type : "application/octet-stream" }),
    };
    const answer = await fetch(`http://${this.host}${path}`, { method, headers, ...(blob && { body: new Uint8Array(blob.bytes) }) });
    if (!answer.ok) throw new Error(`docker-registry answered ${method} ${path} with ${answer.status}: ${await answer.text()}`);
    return answer;
  }

  #answers(): Promise<boolean> {
    if (this.#process.exitCode !== null) throw new Error(`docker-registry ended with ${this.#process.exitCode}`);
    return this.#ask("GET", "/v2/").then(
      () => true,
      () => false,
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new Promise((resolve) => this.#process.once("close", resolve));
    if (this.#process.exitCode === null && this.#process.kill("SIGKILL")) await closed;
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
