/** One run of a harness at a task, played right (sample 0) and wrong (sample 1), behind the recording relay. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Sampling } from "../../base/schema/message.ts";
import type { RolloutRecord } from "../../base/schema/rollout.ts";
import type { Trajectory } from "../../base/schema/trajectory.ts";
import { executeRun } from "../../cli/commands/run.ts";
import { loadConfig } from "../../cli/load-config.ts";
import { loadPlays, type PlayedHarness, playsFor } from "../../examples/demo/plays.ts";
import { readTrajectories } from "../../rollouts/index.ts";
import { type RecordedExchange, startRecordingRelay } from "../fakes/proxies/recording-relay.ts";

export type Played = AsyncDisposable & {
  path: string;
  records: RolloutRecord[];
  trajectories: Trajectory[];
  exchanges: RecordedExchange[];
};

export const examples = fileURLToPath(new URL("../../examples/", import.meta.url));

/** What stands for the policy in records: the engine's own name of its weights. */
export type PlayOptions = {
  harness: PlayedHarness;
  engineUrl: string;
  task: string;
  plays: string;
  sandbox: "docker" | "process";
  /** Forced beside the plays, at every turn. */
  sampling?: Sampling;
  signal: AbortSignal;
};

export async function play(options: PlayOptions): Promise<Played> {
  await using scope = new AsyncDisposableStack();
  const relay = scope.use(await startRecordingRelay(options.engineUrl));
  const out = await mkdtemp(join(tmpdir(), "alidade-e2e-"));
  scope.defer(() => rm(out, { recursive: true, force: true }));
  const script = await loadPlays(options.plays);
  const config = await loadConfig({
    env: {},
    overrides: {
      engine: { url: relay.url },
      harness: options.harness,
      tasks: [options.task],
      samples: 2,
      sandbox: options.sandbox,
      unsafe_host: options.sandbox === "process",
      policy: { version: "weights-7", step: 7 },
      retries: 0,
    },
  });
  const path = join(out, "run");
  const records = await executeRun({
    config,
    path,
    runId: "e2e",
    signal: options.signal,
    onProgress: () => undefined,
    samplingOf: (_task, index) =>
      playsFor(options.harness, script, index === 0 ? "right" : "wrong").map((turn) => ({ ...turn, ...options.sampling })),
  });
  const trajectories = await readTrajectories(path);
  const release = scope.move();
  return { path, records, trajectories, exchanges: relay.exchanges, [Symbol.asyncDispose]: () => release.disposeAsync() };
}

/** For a failing test: what a person would want to see of the rollouts. */
export function told(records: RolloutRecord[]): string {
  return JSON.stringify(
    records.map(({ sample_index, stop_reason, error, verdict, output_tail }) => ({
      sample_index,
      stop_reason,
      error,
      verdict,
      output_tail,
    })),
    null,
    1,
  );
}
