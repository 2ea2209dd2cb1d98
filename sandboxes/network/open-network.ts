/** The network of a sandbox for a while: a second door, behind which the forward proxy is. No network device is attached. */
import type { NetworkAccess, NetworkPhase } from "../../base/schema/network.ts";
import { networkPort } from "../door/door-kind.ts";
import type { Sandbox } from "../sandbox.ts";
import { type ForwardOptions, ForwardProxy } from "./forward-proxy.ts";
import { NetworkLog } from "./network-log.ts";
import { publicInternet } from "./public-internet.ts";

/** What all sandboxes of one attempt share. */
export type NetworkRules = Omit<ForwardOptions, "access" | "phase">;

/** The rules where there is no engine to keep away from. */
export function plainRules(): NetworkRules {
  return { network: publicInternet, never: async () => new Set(), log: new NetworkLog() };
}

export type OpenNetwork = AsyncDisposable & {
  /** By which programs inside find it. */
  env: Record<string, string>;
  /** What was asked of it, in every phase so far. */
  log: NetworkLog;
};

/** Disposing it cuts all connections. */
export async function openNetwork(sandbox: Sandbox, phase: NetworkPhase, access: NetworkAccess, rules: NetworkRules): Promise<OpenNetwork> {
  if (access === "none") return { env: {}, log: rules.log, [Symbol.asyncDispose]: async () => undefined };
  await using scope = new AsyncDisposableStack();
  const proxy = scope.use(new ForwardProxy({ ...rules, access, phase }));
  const door = scope.use(await sandbox.openDoor((socket) => proxy.accept(socket), networkPort));
  const release = scope.move();
  return { env: proxyVariables(door.url, sandbox.hostNames ?? []), log: rules.log, [Symbol.asyncDispose]: () => release.disposeAsync() };
}

/** Programs read one case or the other; curl reads `http_proxy` in small letters only. */
function proxyVariables(url: string, hostNames: readonly string[]): Record<string, string> {
  const variables = { HTTP_PROXY: url, HTTPS_PROXY: url, NO_PROXY: ["127.0.0.1", "localhost", "::1", ...hostNames].join(",") };
  const both = Object.entries(variables).flatMap(([name, value]) => [[name, value] as const, [name.toLowerCase(), value] as const]);
  // Without it Node's own clients read none of these.
  return { ...Object.fromEntries(both), NODE_USE_ENV_PROXY: "1" };
}
