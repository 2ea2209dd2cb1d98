/** The proxy that a run file asks for. */

import { version } from "../../../base/version.ts";
import { assertServed, type EngineSpec, HarnessProxy } from "../../../proxy/index.ts";
import { DiskStore } from "../../../proxy/store/index.ts";
import type { Config } from "../../config.ts";
import type { Watching } from "../watch/open-watching.ts";

type ProxyPlace = {
  engines: EngineSpec[];
  sessions: string;
  /** The folder for texts of sampled tokens; absent: they are not kept. */
  vocabulary?: string;
  watching?: Watching;
  /** It listens for a trainer, too. */
  control?: { token: string; port: number } | undefined;
  signal: AbortSignal;
};

/** `sessions`: the folder of the logs. Throws where it cannot serve the model, or where an engine cannot be trained from and the purpose is training. */
export async function startProxy(
  config: Config,
  { engines, sessions, vocabulary, watching, control, signal }: ProxyPlace,
): Promise<HarnessProxy> {
  await using scope = new AsyncDisposableStack();
  const proxy = scope.use(
    await HarnessProxy.start({
      engines,
      routes: config.routes,
      pauseWaitSeconds: config.pause_wait_seconds,
      bounds: config.bounds,
      store: new DiskStore(sessions),
      ...(vocabulary !== undefined && { vocabulary }),
      version,
      watcher: watching?.watcher,
      families: watching?.families,
      ...(control && { controlToken: control.token, controlPort: control.port }),
      ...(watching?.onError && { onError: watching.onError }),
      signal,
    }),
  );
  // A replay to the end asks none.
  if (engines.length > 0) assertServed(proxy.pool.slots, config.routes, config.model);
  if (config.purpose === "train") proxy.assertTrainable();
  scope.move();
  return proxy;
}
