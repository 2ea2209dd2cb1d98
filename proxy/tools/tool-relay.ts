/**
 * Relays the tool calls of one session's harness to the services, and records them in the session's log. Each call is sent
 * once. It is never repeated, because the service may already have written something.
 */
import { z } from "zod";
import { AlidadeError, asAlidadeError, messageOf } from "../../base/errors.ts";
import { canonicalArguments } from "../../base/schema/arguments.ts";
import { ownPlace, type ToolServer } from "../../base/schema/environment/tool-servers.ts";
import { newId } from "../../base/schema/ids.ts";
import type { ToolFailure } from "../../base/schema/log/tool-entries.ts";
import { tryJson } from "../../base/schema/read-json.ts";
import { jsonMembers } from "../../base/wire/json-members.ts";
import type { Session } from "../session/session.ts";
import { AskedCalls } from "./asked-calls.ts";
import {
  errorObject,
  errorText,
  latestVersion,
  protocolVersions,
  type RpcMessage,
  readContent,
  readMessage,
  resultText,
  rpcErrors,
  type ToolContent,
  toolErrorResult,
} from "./mcp.ts";
import { partsOf, resultForHarness } from "./result-parts.ts";
import { ToolFault } from "./tool-fault.ts";
import { sha256Of, type ToolService } from "./tool-service.ts";

/** Equals the most turns of a sandboxed session. Each run adds two lines to its log. */
const mostRuns = 10_000;

const emptyContent: ToolContent = { content: [] };

export class ToolRelay implements AsyncDisposable {
  readonly #session: Session;
  readonly #services: readonly ToolService[];
  readonly #asked: AskedCalls;
  readonly #failed = new AbortController();
  readonly #running = new Set<Promise<unknown>>();
  #ending = new AbortController();
  #runs: number;
  #down: ToolServer | null = null;

  private constructor(session: Session, services: readonly ToolService[]) {
    this.#session = session;
    this.#services = services;
    const tools = services.flatMap(({ server, list }) => list.names.map((tool) => ({ server: server.name, tool })));
    this.#asked = new AskedCalls(session, tools);
    this.#runs = session.state.toolRuns;
    const { blind } = session.sight;
    blind.addEventListener("abort", () => this.#failed.abort(blind.reason), { once: true });
  }

  /** Writes the lists of tools into the session's log. The relay owns the services: disposing it closes them. */
  static async open(session: Session, services: readonly ToolService[]): Promise<ToolRelay> {
    const seen = services.map(({ server, list, about }) => ({
      type: "tool_server" as const,
      time: Date.now(),
      server: server.name,
      tools_sha256: sha256Of(`${list.text}${about.instructions ?? ""}`),
      tools: [...list.names],
      version: about.version,
    }));
    await session.record(seen);
    return new ToolRelay(session, services);
  }

  get servers(): string[] {
    return this.#services.map(({ server }) => server.name);
  }

  /**
   * Fires if a failed service does not answer our ping either, if the log cannot be written, or if the harness does not show the
   * model the pictures of its tools. The agent has no tools from then on.
   */
  get failed(): AbortSignal {
    return this.#failed.signal;
  }

  /** Why `failed` fired; null if it did not. */
  get failure(): AlidadeError | null {
    return this.#failed.signal.aborted ? asAlidadeError(this.#failed.signal.reason, "tool_service_failed") : null;
  }

  /** The server whose service is down; null if none is. */
  get down(): ToolServer | null {
    return this.#down;
  }

  /** Tells whether the service of a server answers a ping now. */
  isAlive(serverName: string, signal: AbortSignal): Promise<boolean> {
    const service = this.#services.find(({ server }) => server.name === serverName);
    return service?.isAlive(signal) ?? Promise.resolve(false);
  }

  /** Returns the answer to a message of the harness; null if it needs none. */
  async answer(serverName: string, text: string): Promise<string | null> {
    const service = this.#services.find(({ server }) => server.name === serverName);
    const message = readMessage(text);
    if (!service || message === null) return errorText("null", errorObject(rpcErrors.request, "the body is not a JSON-RPC message"));
    const { id, method } = message;
    if (id === undefined || method === undefined) return null;
    const refuse = (code: number, why: string) => errorText(id, errorObject(code, why));
    if (method === "initialize") return resultText(id, greetingOf(service, message));
    if (method === "ping") return resultText(id, "{}");
    if (method === "tools/list") return resultText(id, `{"tools":${service.list.text}}`);
    if (method !== "tools/call") return refuse(rpcErrors.method, `${method.slice(0, 100)} is not supported: this server offers tools only`);
    const call = toCall(message);
    if (call === null) return refuse(rpcErrors.params, "a tool call needs `name`, and `arguments` must be an object");
    if (!service.list.names.includes(call.tool)) return refuse(rpcErrors.params, `Unknown tool: ${call.tool.slice(0, 200)}`);
    const run = this.#run(service, call);
    this.#running.add(run);
    try {
      const answer = await run;
      return "error" in answer ? errorText(id, answer.error) : resultText(id, answer.result);
    } finally {
      this.#running.delete(run);
    }
  }

  /** Breaks off running calls, and waits until the log says so. */
  async stop(): Promise<void> {
    this.#ending.abort();
    await Promise.allSettled(this.#running);
  }

  /** Undoes `stop`, for a harness that is started again. */
  goOn(): void {
    this.#ending = new AbortController();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    await Promise.all(this.#services.map((service) => service[Symbol.asyncDispose]()));
  }

  async #run(service: ToolService, { tool, args }: ToolCallOf): Promise<{ result: string } | { error: string }> {
    const ended = this.#ending.signal;
    const refusal = this.#whyNoMore();
    if (refusal !== null) return { error: errorObject(rpcErrors.internal, refusal) };
    const run_id = newId("tool");
    const started = performance.now();
    const server = service.server.name;
    const asker = this.#asked.take(server, tool, args ?? "");
    const asked = asker ?? { call_id: null, tool_call_id: null };
    const begun = { type: "tool_begun" as const, time: Date.now(), run_id, ordinal: this.#runs++, server, tool };
    try {
      await this.#session.record({ ...begun, arguments: args ?? "", ...asked });
    } catch (error) {
      return this.#notRecorded(error);
    }
    const answer = await this.#askOnce(service, tool, args, ended);
    const { failure, content } = answer;
    const text = "error" in answer ? answer.error : answer.result;
    try {
      await this.#session.record({
        type: "tool_finished",
        time: Date.now(),
        run_id,
        is_error: failure !== undefined || "error" in answer || content.isError === true,
        ...(failure && { failure }),
        result_sha256: sha256Of(text),
        parts: partsOf(content),
        ms: performance.now() - started,
      });
    } catch (error) {
      return this.#notRecorded(error);
    }
    const pictures = content.content.flatMap(({ type, data }) => (type === "image" && typeof data === "string" ? [data] : []));
    // What the agent itself can bring about must not void its rollout: answers of a server in its sandbox, and a run by a command.
    const isAwaited = asker !== null && service.server.service !== ownPlace && !this.#asked.isMixed(asker);
    this.#session.sight.passed(`${server}.${tool}`, pictures, isAwaited ? asker.tool_call_id : null);
    return answer;
  }

  async #askOnce(service: ToolService, tool: string, args: string | undefined, signal: AbortSignal): Promise<RunAnswer> {
    try {
      const answer = await service.call(tool, args, signal);
      if ("error" in answer) return { error: answer.error, content: emptyContent };
      const content = readContent(answer.value);
      return { result: resultForHarness(answer.result, content), content };
    } catch (error) {
      const fault = error instanceof ToolFault ? error : new ToolFault("died", messageOf(error), error);
      if (fault.failure !== "cut") await this.#lookAt(service, fault, signal);
      const content = toolErrorResult(`The tool ${tool} failed: ${fault.message}.`);
      return { result: JSON.stringify(content), content, failure: fault.failure };
    }
  }

  /**
   * Pings a service after a fault. Without an answer it is down, and the rollout ends. Whose doing that is, the rollout finds
   * out. A server in the sandbox is not checked: the agent itself can end it.
   */
  async #lookAt(service: ToolService, fault: ToolFault, signal: AbortSignal): Promise<void> {
    if (service.server.service === ownPlace) return;
    const isAlive = await service.isAlive(signal).catch(() => true);
    if (isAlive || this.#failed.signal.aborted) return;
    this.#down = service.server;
    const message = `the service ${service.server.service} of the tool server ${service.server.name} is down: ${fault.message}, and it did not answer a ping after that`;
    this.#failed.abort(new AlidadeError("tool_service_failed", message, { cause: fault }));
  }

  /**
   * Answers a call that could not be written to the log. Its request was not sent, or its result is lost. An error of the
   * infrastructure also fails the rollout.
   */
  #notRecorded(error: unknown): { error: string } {
    const failure = asAlidadeError(error, "store_error");
    if (failure.owner === "infrastructure") this.#failed.abort(failure);
    return { error: errorObject(rpcErrors.internal, `the call cannot be recorded: ${failure.message}`) };
  }

  #whyNoMore(): string | null {
    const { sealed, logBytes, spec } = this.#session;
    if (sealed !== null || this.#ending.signal.aborted) return "the session takes no more calls";
    if (this.#failed.signal.aborted) return "the tools are out of order";
    if (this.#runs >= mostRuns) return `the session has run ${mostRuns} tools, and takes no more`;
    const { max_log_bytes } = spec.budgets;
    return max_log_bytes !== undefined && logBytes >= max_log_bytes ? `the session has recorded its ${max_log_bytes} bytes` : null;
  }
}

type RunAnswer = ({ result: string } | { error: string }) & { content: ToolContent; failure?: ToolFailure };

/** `args`: an object as JSON text; undefined if the call has none. */
type ToolCallOf = { tool: string; args: string | undefined };

const CallParams = z.looseObject({ name: z.string().min(1), arguments: z.record(z.string(), z.unknown()).nullish() });

/** null: the message is not a valid call. Other fields, such as a progress token, are dropped: the service does not need them. */
function toCall({ params }: RpcMessage): ToolCallOf | null {
  const parsed = CallParams.safeParse(tryJson(params ?? ""));
  if (!parsed.success || params === undefined) return null;
  const args = parsed.data.arguments == null ? undefined : jsonMembers(params).get("arguments");
  if (args !== undefined && canonicalArguments(args) === null) return null;
  return { tool: parsed.data.name, args };
}

const Greeting = z.looseObject({ protocolVersion: z.string() });

function greetingOf({ about, server }: ToolService, { params }: RpcMessage): string {
  const wanted = Greeting.safeParse(tryJson(params ?? "")).data?.protocolVersion;
  const version = protocolVersions.find((one) => one === wanted) ?? latestVersion;
  const info = about.info ?? JSON.stringify({ name: server.name, version: "1" });
  const instructions = about.instructions === undefined ? "" : `,"instructions":${about.instructions}`;
  return `{"protocolVersion":"${version}","capabilities":{"tools":{}},"serverInfo":${info}${instructions}}`;
}
