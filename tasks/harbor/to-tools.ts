/** Harbor's `mcp_servers` as servers of tools: in a service of the compose file, or in the agent's own container (`main`). */
import { isIP } from "node:net";
import type { Services } from "../../base/schema/environment/services.ts";
import { type ToolServer, ToolServers } from "../../base/schema/environment/tool-servers.ts";
import { taskError } from "../task-error.ts";
import type { EnvironmentConfig } from "./task-config.ts";

type HarborServer = EnvironmentConfig["mcp_servers"][number];
type ServerPlace = { file: string; field: string; services: Services };

/** undefined: there are none. Throws with the field that no server of ours can be. */
export function toTools({ mcp_servers }: EnvironmentConfig, file: string, services: Services = {}): ToolServer[] | undefined {
  if (mcp_servers.length === 0) return undefined;
  const servers = mcp_servers.map((server, index) => toServer(server, { file, field: `environment.mcp_servers.${index}`, services }));
  const parsed = ToolServers.safeParse(servers);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw taskError(file, `environment.mcp_servers.${issue?.path.join(".") ?? ""}`, issue?.message ?? "is no server of tools");
}

function toServer(server: HarborServer, place: ServerPlace) {
  const { name, transport, command, args } = server;
  const refuse = (key: string, why: string): never => {
    throw taskError(place.file, `${place.field}.${key}`, why);
  };
  // Harbor's harnesses take such names; ours make a part of a tool's name of it.
  const own = { name: name.toLowerCase().replace(/[^a-z0-9]+/g, "-") };
  if (transport === "stdio") {
    if (command === null) return refuse("command", "is missing: a server of transport stdio has one");
    return { ...own, service: "main", command: [command, ...args] };
  }
  if (transport !== "streamable-http" && transport !== "http")
    return refuse("transport", `is ${JSON.stringify(transport)}: write "streamable-http" or "stdio"; other transports are not spoken`);
  return { ...own, ...toAddress(server, place) };
}

function toAddress({ url }: HarborServer, { file, field, services }: ServerPlace) {
  const address = url !== null && URL.canParse(url) ? new URL(url) : null;
  const why = "write http:, the name of a service of the compose file, and its port, as in http://shop:8000/mcp";
  const path = address && decoded(address.pathname);
  if (address?.protocol !== "http:" || address.username !== "" || address.search !== "" || path === null)
    throw taskError(file, `${field}.url`, `is ${JSON.stringify(url)}: ${why}`);
  const host = address.hostname.toLowerCase();
  const service = isOwn(host) ? "main" : Object.entries(services).find(([name, one]) => [name, ...one.aliases].includes(host))?.[0];
  if (service === undefined) throw taskError(file, `${field}.url`, `names the host ${host}, which is no service of the task: ${why}`);
  return { service, port: Number(address.port || 80), path: path.replace(/\/+$/, "") || "/" };
}

/** Returns null if the percent-encoding cannot be read. */
function decoded(path: string): string | null {
  try {
    return decodeURIComponent(path);
  } catch {
    return null;
  }
}

function isOwn(host: string): boolean {
  return host === "main" || host === "localhost" || (isIP(host) === 4 && host.startsWith("127."));
}
