/** The proxy with one session that has tools, and a door to it on loopback. Its log is on disk. */
import { mkdtemp, rm } from "node:fs/promises";
import { type AddressInfo, connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ToolServer } from "../../base/schema/environment/tool-servers.ts";
import { HarnessProxy, openTools } from "../../proxy/index.ts";
import { DiskStore } from "../../proxy/store/index.ts";
import { answerParent } from "../child.ts";

const folder = await mkdtemp(join(tmpdir(), "alidade-bench-tools-"));
const proxy = await HarnessProxy.start({ store: new DiskStore(folder), version: "bench" });
// A session of a person's own: its pace is not that of a sandbox, which takes 32 requests a second.
const { session } = await proxy.openSession({ any_model: true, purpose: "eval" });
const door = createServer({ noDelay: true }, (socket) => proxy.attach(session, socket));
await new Promise<void>((resolve) => door.listen(0, "127.0.0.1", resolve));

const place = {
  connect: async (_service: string, port: number) => connect({ host: "127.0.0.1", port, noDelay: true }),
  start: () => Promise.reject(new Error("there are no commands here")),
};

answerParent(
  {
    open: async (port: number) => {
      const server = ToolServer.parse({ name: "shop", service: "shop", port });
      proxy.offerTools(session, await openTools(session, [server], place, AbortSignal.timeout(10_000)));
      return `http://127.0.0.1:${(door.address() as AddressInfo).port}/mcp/shop`;
    },
  },
  async () => {
    await proxy[Symbol.asyncDispose]();
    await rm(folder, { recursive: true });
  },
);
