/** Alidade as it runs: the vllm adapter, logs on disk, buffered relay, restore and retry detection on, training sessions. */
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { Session as Inspector } from "node:inspector/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { engines } from "../../engines/registry.ts";
import { HarnessProxy } from "../../proxy/index.ts";
import { DiskStore } from "../../proxy/store/index.ts";
import { answerParent } from "../child.ts";
import { watching } from "../loop-delay.ts";

let proxy: HarnessProxy | null = null;
let folder = "";
const inspector = new Inspector();

const running = (): HarnessProxy => {
  if (!proxy) throw new Error("the proxy was not started");
  return proxy;
};

async function openSessions(count: number, relay: "buffered" | "live"): Promise<string[]> {
  const opened = await Promise.all(Array.from({ length: count }, () => running().openSession({ purpose: "train", relay })));
  return opened.map(({ key }) => key);
}

answerParent(
  {
    start: async (upstream: string) => {
      folder = await mkdtemp(join(tmpdir(), "alidade-bench-"));
      const engine = engines.find(({ name }) => name === "vllm")!.create({ baseUrl: upstream, apiKey: null });
      proxy = await HarnessProxy.start({ engine, store: new DiskStore(folder), version: "bench" });
      return proxy.url;
    },
    ...watching(),
    openLive: (count: number) => openSessions(count, "live"),
    /** New sessions; their keys go into the path of the calls. */
    open: (count: number) => openSessions(count, "buffered"),
    /** Bytes in use after all garbage was collected, and what the system counts. */
    memory: () => {
      setFlagsFromString("--expose-gc");
      const collect = runInNewContext("gc") as () => void;
      collect();
      collect();
      const { heapUsed, arrayBuffers, rss } = process.memoryUsage();
      return { used: heapUsed + arrayBuffers, rss };
    },
    profileStart: async () => {
      inspector.connect();
      await inspector.post("Profiler.enable");
      await inspector.post("Profiler.start");
    },
    profileStop: async (path: string) => {
      const { profile } = await inspector.post("Profiler.stop");
      inspector.disconnect();
      await mkdir(dirname(path), { recursive: true });
      await writeFile(path, JSON.stringify(profile));
    },
    /** Seals all sessions; the folder of their logs. */
    close: async () => {
      const { sessions } = running();
      await Promise.all(sessions.all().map((session) => sessions.close(session, "the round is over")));
      return folder;
    },
  },
  async () => {
    await proxy?.[Symbol.asyncDispose]();
    await proxy?.engine.close();
    if (folder) await rm(folder, { recursive: true, force: true });
  },
);
