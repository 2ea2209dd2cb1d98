/** Makes calls of tools without an agent: in a sandbox of ours, through a relay with a record of its own. */
import type { ToolServer } from "../../base/schema/environment/tool-servers.ts";
import type { ToolRun, Trajectory } from "../../base/schema/trajectory.ts";
import { HarnessProxy, openTools, type ToolRelay } from "../../proxy/index.ts";
import { MemoryStore } from "../../proxy/store/index.ts";
import { reconstruct } from "../../reconstruct/index.ts";
import type { Sandbox } from "../../sandboxes/index.ts";

export type PlayedCalls = AsyncDisposable & { relay: ToolRelay; trajectory(): Promise<Trajectory> };

/** Opens the relay. Throws as `openTools` does. */
export async function playCalls(servers: readonly ToolServer[], sandbox: Sandbox, signal: AbortSignal): Promise<PlayedCalls> {
  await using scope = new AsyncDisposableStack();
  const proxy = scope.use(await HarnessProxy.start({ store: new MemoryStore(), version: "check" }));
  const { session } = await proxy.openSession({ purpose: "eval", sandboxed: true });
  const relay = scope.use(await openTools(session, servers, sandbox, signal));
  const release = scope.move();
  return {
    relay,
    trajectory: async () => reconstruct(await proxy.sessions.store.read(session.id)),
    [Symbol.asyncDispose]: () => release.disposeAsync(),
  };
}

/** `arguments`: JSON text, or nothing. */
export async function playCall(relay: ToolRelay, call: Pick<ToolRun, "server" | "tool" | "arguments">): Promise<void> {
  const args = call.arguments === "" ? "" : `,"arguments":${call.arguments}`;
  const params = `{"name":${JSON.stringify(call.tool)}${args}}`;
  await relay.answer(call.server, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`);
}
