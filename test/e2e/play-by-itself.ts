/** One session of a real harness whose model plays by itself: nothing is forced on it. The witness is the recording relay. */
import assert from "node:assert/strict";
import { chmod } from "node:fs/promises";
import { join } from "node:path";
import type { TestContext } from "node:test";
import type { Policy } from "../../base/schema/policy.ts";
import type { LogLine } from "../../base/schema/session-log.ts";
import type { SessionSpec } from "../../base/schema/session-spec.ts";
import type { Trajectory } from "../../base/schema/trajectory.ts";
import { engineNamed } from "../../engines/registry.ts";
import type { Harness, HarnessLaunch } from "../../harnesses/harness.ts";
import { harnessNamed } from "../../harnesses/registry.ts";
import { HarnessProxy } from "../../proxy/index.ts";
import { MemoryStore } from "../../proxy/store/index.ts";
import { type RecordedExchange, startRecordingRelay } from "../fakes/proxies/recording-relay.ts";
import { installedPack } from "../harness/installed-pack.ts";
import { type Ended, runCommand, temporaryPlace, writeBelow } from "../harness/run-harness.ts";
import { miniSweAgent, miniSweAgentPlace } from "../interop/mini-swe-agent/mini-swe-agent.ts";
import { type PlayingHarness, taughtTask } from "../interop/vllm/plays.ts";
import type { Vllm } from "../interop/vllm/start.ts";
import { need } from "../needs.ts";

export type SelfPlayed = {
  harness: PlayingHarness;
  ended: Ended;
  failed: boolean;
  trajectory: Trajectory;
  entries: LogLine[];
  exchanges: RecordedExchange[];
  seconds: number;
  /** How often the harness was told to go on, because its model had given its last word too early. */
  told: number;
  unseen: unknown[];
};

export type SelfPlayOptions = {
  harness: PlayingHarness;
  vllm: Pick<Vllm, "url" | "model">;
  /** What speaks there. Absent: vllm. */
  engine?: string;
  turns: number;
  /** Where the harness has ended before so many calls, it is told the same again in the same conversation, `most` times. */
  goOn?: { calls: number; most: number };
  /** The harness as its user would set it up. */
  setUp?: (launch: HarnessLaunch) => HarnessLaunch;
  spec?: Partial<SessionSpec>;
  policy?: Policy;
  /** Where it works, made and removed here: harnesses print it in their prompts. Absent: a folder of its own. */
  folder?: string;
};

/** Null where the harness is not installed. The session is over after `turns` turns with tools, or what a free model makes of it. */
export async function playByItself(t: TestContext, options: SelfPlayOptions): Promise<SelfPlayed | null> {
  const installed = await installedHarness(t, options.harness);
  if (installed === null) return null;
  await using scope = new AsyncDisposableStack();
  const task = taughtTask(options.harness, options.turns);
  const { home, workdir } = scope.use(await temporaryPlace(task.files, options.folder));
  for (const program of task.programs) await chmod(join(workdir, program), 0o755);
  const witness = scope.use(await startRecordingRelay(options.vllm.url));
  const engine = engineNamed(options.engine ?? "vllm").create({ baseUrl: witness.url, apiKey: null });
  scope.defer(() => engine.close());
  const unseen: unknown[] = [];
  const store = new MemoryStore();
  const proxy = scope.use(
    await HarnessProxy.start({
      engine,
      store,
      version: "test",
      policy: options.policy ?? null,
      onError: (error, what) => void unseen.push([what, error]),
    }),
  );
  const { session, key } = await proxy.openSession({ any_model: true, purpose: "train", harness: options.harness, ...options.spec });
  const context = {
    instruction: task.instruction,
    baseUrl: proxy.url,
    apiKey: key,
    model: options.vllm.model,
    home,
    workdir,
    pack: installed.folder,
    contextWindow: 32_768,
  };
  const setUp = options.setUp ?? asIs;
  const more = options.goOn !== undefined && installed.harness.resumes === true;
  const launch = setUp(installed.harness.launch({ ...context, ...(more && { dialogue: "begins" as const }) }));
  await writeBelow(home, launch.files);
  const run = async ({ argv, env }: HarnessLaunch) => {
    const ended = await runCommand(argv, { cwd: workdir, env: { PATH: "/usr/bin:/bin", ...env }, signal: t.signal });
    await session.running.idle();
    return ended;
  };
  const started = performance.now();
  let ended = await run(launch);
  let told = 0;
  for (const { most = 0, calls = 0 } = options.goOn ?? {}; more && told < most && session.calls().length < calls; told++)
    ended = await run(setUp(installed.harness.launch({ ...context, dialogue: "goes_on" })));
  const seconds = (performance.now() - started) / 1000;
  return {
    harness: options.harness,
    ended,
    failed: installed.harness.end(ended).failed,
    trajectory: await proxy.trajectory(session.id),
    entries: await store.read(session.id),
    exchanges: witness.exchanges,
    seconds,
    told,
    unseen,
  };
}

/**
 * Plays at most eight sessions, because a free model plays differently each time. Returns the first for which `holds` is true; null: the
 * harness is not installed.
 */
export async function playUntil(
  t: TestContext,
  options: SelfPlayOptions,
  holds: (trajectory: Trajectory) => boolean,
): Promise<SelfPlayed | null> {
  for (let session = 0; session < 8; session++) {
    const played = await playByItself(t, options);
    if (played === null || holds(played.trajectory)) return played;
  }
  return assert.fail("none of eight sessions was as it is needed");
}

const asIs = (launch: HarnessLaunch): HarnessLaunch => launch;

async function installedHarness(
  t: TestContext,
  name: PlayingHarness,
): Promise<{ harness: Pick<Harness, "launch" | "end" | "resumes">; folder: string } | null> {
  if (name === "mini-swe-agent")
    return (await need(t, "harness:mini-swe-agent")) ? { harness: miniSweAgent, folder: miniSweAgentPlace() } : null;
  const harness = harnessNamed(name);
  const pack = await installedPack(t, harness);
  return pack === null ? null : { harness, folder: pack.folder };
}
