/**
 * The connection to one container engine, wherever it listens: a unix socket, TCP with or without TLS, or SSH. Its
 * connections are remembered, so that requests to an engine that is gone fail instead of waiting for ever.
 */
import { readFileSync } from "node:fs";
import { type ClientRequest, Agent as HttpAgent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import { createRequire } from "node:module";
import { Socket } from "node:net";
import { homedir } from "node:os";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { inspect } from "node:util";
import type Docker from "dockerode";
import { AlidadeError, messageOf } from "../../../base/errors.ts";
import { type EngineAddress, engineUrl } from "../../../base/schema/container-engine.ts";
import { sshConnection } from "./ssh-connection.ts";

type Variables = Record<string, string | undefined>;

/** As Node's own: connections are used again, and an idle one is closed after five seconds. */
const agentOptions = { keepAlive: true, timeout: 5_000, scheduling: "lifo" } as const;
const tlsPort = "2376";
const connectMs = 10_000;

const load = createRequire(import.meta.url);

const connections = new WeakMap<object, { sockets: Set<Duplex>; helloMs: number }>();

/** How long an engine may take to say hello: one that is starting up takes about a second, and a login by SSH several. */
const usualHelloMs = 5_000;
const sshHelloMs = 30_000;

/** Connects to nothing yet. Throws `config_invalid` for an address or certificates that cannot be. */
export function connectEngine(address: EngineAddress, env: Variables = process.env): Docker {
  const url = parseHost(address.host);
  const sockets = new Set<Duplex>();
  // Loaded on first use: it brings SSH and gRPC along, 0.2 s of CPU at each start of a command that needs no engine.
  const Client = load("dockerode") as typeof Docker;
  const docker = new Client({
    host: undefined,
    port: undefined,
    pathPrefix: "/",
    ...wayTo(url, address, sockets, env),
  } as Docker.DockerOptions);
  connections.set(docker, { sockets, helloMs: url.protocol === "ssh:" ? sshHelloMs : usualHelloMs });
  return docker;
}

/** Ends all that is under way at this engine: each request fails, and each attached stream ends. */
export function endConnections(docker: Docker): void {
  for (const socket of connections.get(docker)?.sockets ?? []) socket.destroy(new Error("The container engine does not answer any more"));
}

/** Rejects where the engine does not answer in time. */
export async function hello(docker: Docker, signal?: AbortSignal): Promise<void> {
  const ms = connections.get(docker)?.helloMs ?? usualHelloMs;
  const limit = AbortSignal.timeout(ms);
  const options = { abortSignal: signal === undefined ? limit : AbortSignal.any([limit, signal]) };
  try {
    // The type declarations know no options here; dockerode itself takes them.
    await (docker.ping as unknown as (options: { abortSignal: AbortSignal }) => Promise<unknown>).call(docker, options);
  } catch (error) {
    throw limit.aborted ? new Error(`it did not answer within ${ms / 1000} s`) : error;
  }
}

function parseHost(host: string): URL {
  const url = engineUrl(host);
  if (url !== null) return url;
  throw invalid(host, "it is no address of a Docker engine, such as unix:///var/run/docker.sock, tcp://10.0.0.5:2376 or ssh://user@host");
}

function wayTo(url: URL, address: EngineAddress, sockets: Set<Duplex>, env: Variables): Record<string, unknown> {
  const plain = tracked(new HttpAgent(agentOptions), sockets);
  if (url.protocol === "unix:") return { socketPath: decodeURIComponent(url.pathname), agent: plain };
  // The name is never looked up: the connection is the one that SSH makes.
  if (url.protocol === "ssh:") return { protocol: "http", host: "docker", port: 80, agent: tracked(new SshAgent(url), sockets) };
  const isTls =
    url.protocol === "https:" || url.port === tlsPort || address.cert_path !== undefined || (env.DOCKER_TLS_VERIFY ?? "") !== "";
  const place = { host: url.hostname, port: url.port || (isTls ? tlsPort : "2375") };
  if (!isTls || url.protocol === "http:") return { ...place, protocol: "http", agent: plain };
  return { ...place, protocol: "https", ...certificates(address, env), agent: tracked(new HttpsAgent(agentOptions), sockets) };
}

function certificates({ host, cert_path }: EngineAddress, env: Variables): { ca?: string; cert?: string; key?: string } {
  const named = cert_path ?? (env.DOCKER_CERT_PATH || undefined);
  const folder = named ?? join(homedir(), ".docker");
  const read = (file: string) => readFileSync(join(folder, file), "utf8");
  try {
    return { ca: read("ca.pem"), cert: read("cert.pem"), key: read("key.pem") };
  } catch (error) {
    if (named === undefined) return {}; // an engine with a public certificate, and no client certificates
    throw invalid(host, `its certificates cannot be read (${messageOf(error)}): ${folder} must hold ca.pem, cert.pem and key.pem`);
  }
}

function invalid(host: string, why: string): AlidadeError {
  return new AlidadeError("config_invalid", `The engine ${JSON.stringify(host)} cannot be used: ${why}.`, { param: "docker_engines" });
}

type Connect = (options: never, done?: (error: Error | null, socket: Duplex) => void) => Duplex | null | undefined;

function tracked<Kind extends HttpAgent>(agent: Kind, sockets: Set<Duplex>): Kind {
  const connect = agent.createConnection.bind(agent) as Connect;
  const remember: Connect = (options, done) => {
    const socket = connect(options, done);
    if (!socket) return socket;
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    if (socket instanceof Socket && socket.connecting) limitConnecting(socket);
    return socket;
  };
  // docker-modem prints the options of each request for a log, on or off: with all sockets that is half a second of CPU a rollout.
  return Object.assign(agent, { createConnection: remember, addRequest: guarded(agent), [inspect.custom]: () => "Agent" });
}

/** Not in the type declarations: Node hands each request to its agent by it. */
type AddRequest = (request: ClientRequest, ...more: unknown[]) => void;

/**
 * The engine is the only one that is asked, and an answer that it breaks off fails its request. docker-modem alone would
 * follow a redirect to any host, over a connection whose errors end the process; and it would wait for ever for the rest of
 * an answer.
 */
function guarded(agent: HttpAgent): AddRequest {
  const add = (agent as unknown as { addRequest: AddRequest }).addRequest.bind(agent);
  return (request, ...more) => {
    request.prependOnceListener("response", (response) => {
      delete response.headers.location;
      response.once("error", (error) => request.emit("error", error));
    });
    add(request, ...more);
  };
}

/** A machine that is cut off answers nothing, and the system would try for two minutes. */
function limitConnecting(socket: Socket): void {
  const late = () => socket.destroy(new Error(`The container engine did not take a connection within ${connectMs} ms`));
  const timer = setTimeout(late, connectMs);
  for (const event of ["connect", "close"]) socket.once(event, () => clearTimeout(timer));
}

class SshAgent extends HttpAgent {
  readonly #url: URL;

  constructor(url: URL) {
    super(agentOptions);
    this.#url = url;
  }

  override createConnection(): Duplex {
    return sshConnection(this.#url);
  }
}
