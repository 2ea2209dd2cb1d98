/** A proxy whose one session has tools, and a client of the protocol's own SDK that reaches them by the session's door. */
import { Client as McpClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ToolServer } from "../../../base/schema/environment/tool-servers.ts";
import type { ToolBegun, ToolFinished } from "../../../base/schema/log/tool-entries.ts";
import { openTools, type ProxyOptions, type ServicesWithin, type ToolRelay } from "../../../proxy/index.ts";
import type { ScriptedReply, WireRequest } from "../engines/scripted-engine.ts";
import { doorAt } from "../proxies/door-at.ts";
import { type Client, type ProxyAt, proxyAt } from "../proxies/proxy-at.ts";

export type ToolsAt = AsyncDisposable & {
  at: ProxyAt;
  client: Client;
  relay: ToolRelay;
  /** As the harness reaches the proxy. */
  url: string;
  mcp(server?: string): Promise<McpClient>;
  /** A message to the relay as it stands, and what it answers. */
  post(body: string, server?: string): Promise<{ status: number; text: string }>;
  runs(): Promise<{ begun: ToolBegun[]; finished: ToolFinished[] }>;
};

type ToolsOptions = {
  servers: Record<string, unknown>[];
  place: ServicesWithin;
  script?: (request: WireRequest, index: number) => ScriptedReply;
  options?: Partial<ProxyOptions>;
};

export async function toolsAt({ servers, place, script = () => ({ text: "yes" }), options = {} }: ToolsOptions): Promise<ToolsAt> {
  await using scope = new AsyncDisposableStack();
  const at = scope.use(await proxyAt(script, options));
  const client = await at.open({ sandboxed: true, purpose: "train", relay: "buffered" });
  const session = at.proxy.session(client.sessionId);
  const door = scope.use(await doorAt(at.proxy, client.sessionId));
  const relay = scope.use(
    await openTools(
      session,
      servers.map((server) => ToolServer.parse(server)),
      place,
      AbortSignal.timeout(60_000),
    ),
  );
  at.proxy.offerTools(session, relay);
  const clients = scope.adopt([] as McpClient[], async (all) => void (await Promise.all(all.map((one) => one.close()))));
  const release = scope.move();
  return {
    at,
    client,
    relay,
    url: door.url,
    async mcp(server = "shop") {
      const made = new McpClient({ name: "harness", version: "1" });
      clients.push(made);
      await made.connect(new StreamableHTTPClientTransport(new URL(`${door.url}/mcp/${server}`)));
      return made;
    },
    async post(body, server = "shop") {
      const response = await fetch(`${door.url}/mcp/${server}`, { method: "POST", body });
      return { status: response.status, text: await response.text() };
    },
    async runs() {
      const entries = await client.entries();
      return {
        begun: entries.filter((entry) => entry.type === "tool_begun"),
        finished: entries.filter((entry) => entry.type === "tool_finished"),
      };
    },
    [Symbol.asyncDispose]: () => release.disposeAsync(),
  };
}

export function callText(name: string, args: string, id: string | number = 1): string {
  return `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"method":"tools/call","params":{"name":${JSON.stringify(name)},"arguments":${args}}}`;
}
