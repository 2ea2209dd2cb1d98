/** The proxy that graders ask models through where no agent is at work. */

import type { OpenSampler } from "../../../graders/index.ts";
import { samplersOf } from "../../../rollouts/index.ts";
import type { Config } from "../../config.ts";
import { openEngines } from "./open-engine.ts";
import { startProxy } from "./start-proxy.ts";

export type OpenedJudge = AsyncDisposable & { openSampler: OpenSampler };

/** `sessions`: the folder of what the models are asked. Throws `config_invalid` and `engine_unreachable` as a run does. */
export async function openJudge(
  config: Config,
  { sessions, note, signal }: { sessions: string; note: (text: string) => void; signal: AbortSignal },
): Promise<OpenedJudge> {
  await using scope = new AsyncDisposableStack();
  const { engines } = scope.use(await openEngines(config, signal));
  // Nothing of a judge is trained, so its engine needs no token ids.
  const proxy = scope.use(await startProxy({ ...config, purpose: "eval" }, { engines, sessions, signal }));
  const release = scope.move();
  return { openSampler: samplersOf(proxy, note), [Symbol.asyncDispose]: () => release.disposeAsync() };
}
