/** The proxy as rollouts have it, in a process of its own, with a door for each session and its logs on disk. */
import { once } from "node:events";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { answerParent } from "../../../bench/child.ts";
import { engines } from "../../../engines/registry.ts";
import { HarnessProxy } from "../../../proxy/index.ts";
import { DiskStore } from "../../../proxy/store/index.ts";

const folder = await mkdtemp(join(tmpdir(), "alidade-load-"));
let proxy: HarnessProxy;
let peakRss = 0;
let busy = newBusy();
setInterval(() => {
  const { user, system } = process.threadCpuUsage(busy.seen);
  const ms = (user + system) / 1000;
  busy.seen = process.threadCpuUsage();
  busy.cpuMs += ms;
  busy.longestMs = Math.max(busy.longestMs, ms);
}, 2).unref();
setInterval(() => {
  peakRss = Math.max(peakRss, process.memoryUsage.rss());
}, 20).unref();

/** By CPU and not by the clock: on a machine that others use too a thread stands still for reasons of theirs. */
function newBusy() {
  return { since: performance.now(), seen: process.threadCpuUsage(), cpuMs: 0, longestMs: 0 };
}

answerParent(
  {
    start: async (engineUrl: string) => {
      const engine = engines.find(({ name }) => name === "vllm")!.create({ baseUrl: engineUrl, apiKey: null });
      proxy = await HarnessProxy.start({ engine, store: new DiskStore(folder), version: "test", onError: () => undefined });
    },
    /** A sandboxed session, and the port of its door. */
    open: async () => {
      const { session } = await proxy.openSession({ purpose: "train", sandboxed: true, continuity: "off" });
      const door = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
        socket.on("error", () => undefined);
        proxy.attach(session, socket);
      });
      door.maxConnections = 512;
      door.listen(0, "127.0.0.1");
      await once(door, "listening");
      return { id: session.id, port: (door.address() as AddressInfo).port };
    },
    /** Bytes of a session's log. */
    logged: async (id: string) => (await stat(join(folder, `${id}.jsonl`))).size,
    /** Ends a session, as the end of its rollout does. */
    close: (id: string) => proxy.sessions.close(proxy.session(id), "the round is over"),
    /** What the thread that serves all did since it was asked last (`Busy`). */
    busy: () => {
      const { since, cpuMs, longestMs } = busy;
      busy = newBusy();
      return { ms: performance.now() - since, cpuMs, longestMs };
    },
    /** The largest that the process was since it was asked last. */
    peakRss: () => {
      const peak = peakRss;
      peakRss = process.memoryUsage.rss();
      return peak;
    },
  },
  async () => {
    await rm(folder, { recursive: true, force: true });
  },
);
