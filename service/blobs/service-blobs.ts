/**
 * Blobs that a service keeps in its own place, for nodes that share no disk and no bucket with it. The certificate of an https
 * address is trusted as Node trusts it (`NODE_EXTRA_CA_CERTS` adds one).
 */
import { AlidadeError } from "../../base/errors.ts";
import { tryJson } from "../../base/schema/read-json.ts";
import { askAgain, bytesOf, toRead, toWrite } from "./ask-again.ts";
import type { Blobs } from "./blobs.ts";
import { assertKey, assertName, logsFolder } from "./keys.ts";

/** As the service reads it by default. */
const tokenVariable = "ALIDADE_SERVICE_TOKEN";

export class ServiceBlobs implements Blobs {
  readonly place: string;
  readonly #authorization: string;

  /** `url`: the service's. Throws `config_invalid` for another one, and without a token. */
  constructor(url: string, env: Record<string, string | undefined>) {
    const address = URL.parse(url);
    if (address === null || address.username !== "" || address.password !== "" || address.search !== "" || address.hash !== "")
      throw invalid(`${url.replace(/\/\/[^/]*@/, "//…@")} is no address of a service: give http(s)://host:port`);
    if (!env[tokenVariable]) throw invalid(`${url} needs ${tokenVariable}, which is not set: put a token with the role node into it`);
    this.place = url.replace(/\/+$/, "");
    this.#authorization = `Bearer ${env[tokenVariable]}`;
  }

  async put(key: string, bytes: Uint8Array, signal?: AbortSignal): Promise<void> {
    const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const answer = await this.#ask("write", key, { method: "PUT", body, headers: { "content-type": "application/octet-stream" } }, signal);
    if (!answer.ok) throw await this.#refusal("write", key, answer);
    await answer.body?.cancel();
  }

  async get(key: string, patient?: AbortSignal): Promise<Buffer | null> {
    const answer = await this.#ask("read", key, { method: "GET" }, patient);
    if (answer.ok) return Buffer.from(await answer.arrayBuffer());
    if (answer.status !== 404) throw await this.#refusal("read", key, answer);
    await answer.body?.cancel();
    return null;
  }

  async removeLogs(name: string, attempt: number, stop?: AbortSignal): Promise<void> {
    assertName(name);
    const key = `${name}/${logsFolder}/${attempt}`;
    const send = (signal: AbortSignal) => fetch(`${this.place}/blobs/${key}`, this.#sent({ method: "DELETE" }, signal));
    const answer = await askAgain(`cannot remove ${this.place}/blobs/${key}`, toRead, send, stop);
    if (!answer.ok) throw await this.#refusal("remove", key, answer);
    await answer.body?.cancel();
  }

  #ask(verb: "read" | "write", key: string, init: RequestInit, stop?: AbortSignal): Promise<Response> {
    assertKey(key);
    const send = (signal: AbortSignal) => fetch(`${this.place}/blobs/${key}`, this.#sent(init, signal));
    return askAgain(`cannot ${verb} ${this.place}/blobs/${key}`, verb === "write" || stop ? toWrite(bytesOf(init)) : toRead, send, stop);
  }

  #sent(init: RequestInit, signal: AbortSignal): RequestInit {
    return { ...init, headers: { ...init.headers, authorization: this.#authorization }, redirect: "error", signal };
  }

  /** In the service's own words, where it has said any. */
  async #refusal(verb: "read" | "remove" | "write", key: string, answer: Response): Promise<AlidadeError> {
    const text = await answer.text().catch(() => "");
    const said = (tryJson(text) as { error?: { message?: unknown } } | undefined)?.error?.message;
    const why = `HTTP ${answer.status} ${typeof said === "string" ? said : ""}`.trim().slice(0, 500);
    if (answer.status === 401 || answer.status === 403) return invalid(`${this.place}: ${why}`);
    return new AlidadeError("store_error", `cannot ${verb} ${this.place}/blobs/${key}: ${why}`);
  }
}

function invalid(message: string): AlidadeError {
  return new AlidadeError("config_invalid", `--trajectories: ${message}`, { param: "trajectories" });
}
