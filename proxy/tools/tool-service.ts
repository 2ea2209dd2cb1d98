/** The client of one tool server: handshake, list of tools, calls, and a ping that tells whether the server lives. */
import { hash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { AlidadeError, messageOf } from "../../base/errors.ts";
import { Deadline } from "../../base/host/deadline.ts";
import type { ToolServer } from "../../base/schema/environment/tool-servers.ts";
import { jsonMembers } from "../../base/wire/json-members.ts";
import { latestVersion, noticeText, protocolVersions, readMessage, requestText, type ServiceAnswer } from "./mcp.ts";
import type { ServiceLink } from "./service-link.ts";
import { ToolFault, tooLarge } from "./tool-fault.ts";
import { readTools, type ServedTools, toList } from "./tool-list.ts";

/** A living service answers a ping at once, or within seconds on a loaded machine. */
const pingMs = 10_000;
/** The pause between two attempts to connect to a service that is starting. */
const retryMs = 100;

/** Opens a link to the service. Throws while nothing listens there. */
export type OpenLink = (signal: AbortSignal) => Promise<ServiceLink>;

const About = z.looseObject({
  protocolVersion: z.string(),
  serverInfo: z.looseObject({ name: z.string(), version: z.string().optional() }).optional(),
});

export class ToolService implements AsyncDisposable {
  readonly server: ToolServer;
  /** Asked for once, so it stays the same for the whole rollout. */
  readonly list: ServedTools;
  /** `info` and `instructions`: JSON text of `serverInfo` and `instructions` in its first answer. */
  readonly about: { info: string | undefined; instructions: string | undefined; version: string | null };
  readonly #asking: Asking;

  private constructor(server: ToolServer, asking: Asking, list: ServedTools, about: ToolService["about"]) {
    this.server = server;
    this.list = list;
    this.about = about;
    this.#asking = asking;
  }

  /**
   * Waits until the service takes connections, then asks once for its tools. Throws `tool_service_failed` if it is not a
   * tool server, and `task_invalid` if harnesses cannot use its list.
   */
  static async open(server: ToolServer, openLink: OpenLink, signal: AbortSignal): Promise<ToolService> {
    let asking: Asking | null = null;
    try {
      const greeted = await greetPatiently(server, openLink, signal);
      asking = greeted.asking;
      const { ask } = asking;
      const list = toList(server, await readTools((params) => ask("tools/list", params, signal)));
      return new ToolService(server, asking, list, greeted.about);
    } catch (error) {
      await asking?.link[Symbol.asyncDispose]();
      if (error instanceof AlidadeError) throw error;
      const message = `the tool server ${server.name} in the service ${server.service} cannot be used: ${messageOf(error)}`;
      throw new AlidadeError("tool_service_failed", message, { cause: error });
    }
  }

  /** Calls a tool once. `args`: an object as JSON text. Throws a ToolFault if no answer comes. */
  async call(tool: string, args: string | undefined, signal: AbortSignal): Promise<ServiceAnswer> {
    const { timeout_seconds } = this.server;
    using limit = new Deadline(timeout_seconds * 1000);
    const params = `{"name":${JSON.stringify(tool)}${args === undefined ? "" : `,"arguments":${args}`}}`;
    try {
      return await this.#asking.ask("tools/call", params, AbortSignal.any([signal, limit.signal]));
    } catch (error) {
      if (signal.aborted) throw new ToolFault("cut", "the rollout ended", error);
      if (limit.signal.aborted) throw new ToolFault("hung", `it did not answer within ${timeout_seconds} s`, error);
      throw error;
    }
  }

  /** Tells whether it answers a ping now. A JSON-RPC error is an answer too, and so is a text that is too long. */
  async isAlive(signal: AbortSignal): Promise<boolean> {
    using limit = new Deadline(pingMs);
    try {
      await this.#asking.ask("ping", undefined, AbortSignal.any([signal, limit.signal]));
      return true;
    } catch (error) {
      signal.throwIfAborted();
      // Only a living service writes. A command's long line may be the result of another call.
      return error instanceof ToolFault && error.failure === "too_large";
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#asking.link[Symbol.asyncDispose]();
  }
}

/** Numbers requests and reads their answers. */
class Asking {
  readonly link: ServiceLink;
  readonly #mostBytes: number;
  #nextId = 1;

  constructor(link: ServiceLink, mostBytes: number) {
    this.link = link;
    this.#mostBytes = mostBytes;
  }

  readonly ask = async (method: string, params: string | undefined, signal: AbortSignal): Promise<ServiceAnswer> => {
    const id = this.#nextId++;
    let text: string;
    try {
      text = await this.link.ask(id, requestText(id, method, params), signal);
    } catch (error) {
      if (signal.aborted) this.#cancel(id);
      throw error;
    }
    const { result, error, value } = readMessage(text) ?? {};
    const answer = error ?? result;
    if (answer === undefined) throw new ToolFault("invalid", "its answer is no message of the protocol");
    if (Buffer.byteLength(answer) > this.#mostBytes) throw tooLarge(this.#mostBytes);
    return error === undefined ? { result: answer, value } : { error: answer };
  };

  /** Tells the service that it may stop. Nothing depends on this message. */
  #cancel(id: number): void {
    this.link.tell(noticeText("notifications/cancelled", `{"requestId":${id}}`), AbortSignal.timeout(pingMs)).catch(() => undefined);
  }
}

type Greeted = { asking: Asking; about: ToolService["about"] };

/** Repeats the handshake until the service answers it. Repeating is safe: a handshake has no effect. */
async function greetPatiently(server: ToolServer, openLink: OpenLink, signal: AbortSignal): Promise<Greeted> {
  for (let last: unknown = null; ; ) {
    let asking: Asking | null = null;
    try {
      asking = new Asking(await openLink(signal), server.max_result_bytes);
      return { asking, about: await greet(asking, signal) };
    } catch (error) {
      await asking?.link[Symbol.asyncDispose]();
      // The last failed attempt explains more than the timeout does.
      if (signal.aborted) throw last ?? error;
      if (!isStarting(error)) throw error;
      last = error;
      await sleep(retryMs, undefined, { signal }).catch(() => undefined);
    }
  }
}

/** Tells whether nothing listens yet, or the listener is not ready. */
function isStarting(error: unknown): boolean {
  return error instanceof ToolFault ? error.failure === "died" : error instanceof AlidadeError && error.code === "sandbox_error";
}

async function greet(asking: Asking, signal: AbortSignal): Promise<ToolService["about"]> {
  const params = JSON.stringify({ protocolVersion: latestVersion, capabilities: {}, clientInfo: { name: "alidade", version: "1" } });
  const answer = await asking.ask("initialize", params, signal);
  if ("error" in answer) throw new Error(`it refuses the handshake: ${answer.error.slice(0, 500)}`);
  const about = About.safeParse(answer.value);
  if (!about.success) throw new Error("its first answer has no protocolVersion");
  const { protocolVersion, serverInfo } = about.data;
  if (!protocolVersions.some((version) => version === protocolVersion))
    throw new Error(`it speaks protocol version ${protocolVersion.slice(0, 100)}: use one of ${protocolVersions.join(", ")}`);
  asking.link.speaks(protocolVersion);
  await asking.link.tell(noticeText("notifications/initialized"), signal);
  const members = jsonMembers(answer.result);
  const version = serverInfo && `${serverInfo.name} ${serverInfo.version ?? ""}`.trim().slice(0, 200);
  return { info: members.get("serverInfo"), instructions: members.get("instructions"), version: version ?? null };
}

export function sha256Of(text: string): string {
  return hash("sha256", text);
}
