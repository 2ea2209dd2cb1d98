/** Makes rollouts that begin with recorded turns, in a run folder of their own. */
import { join } from "node:path";
import { AlidadeError } from "../../../base/errors.ts";
import { copyNamed, namedPictures } from "../../../base/media/named-bytes.ts";
import { newId } from "../../../base/schema/ids.ts";
import type { RolloutRecord } from "../../../base/schema/rollout.ts";
import { version } from "../../../base/version.ts";
import { cutAfter, isAnswered, type SessionRecording, toRecording } from "../../../proxy/index.ts";
import { DiskStore } from "../../../proxy/store/index.ts";
import { makeSlots, RunFolder, rolloutsOn, toReplayPlans } from "../../../rollouts/index.ts";
import type { Config } from "../../config.ts";
import { loadConfig } from "../../load-config.ts";
import { say } from "../command-line.ts";
import { type EngineFlags, enginesOf } from "../flags/engine-flags.ts";
import { openEngines } from "../proxy/open-engine.ts";
import { findRecord, findTrajectory } from "../records/find-trajectory.ts";
import { openKeptRun } from "../records/kept-run.ts";
import { runFolderOf } from "../records/run-folder-of.ts";
import { harnessOf } from "../run/harness-of.ts";
import { openMachine } from "../run/open-machine.ts";
import { unwatched } from "../watch/open-watching.ts";

export type ReplayFlags = {
  run?: string;
  out: string;
  words: "end" | "go_on";
  unrepeatable?: boolean;
  overcommit?: boolean;
  json?: boolean;
};

type WantedReplay = {
  /** A group of rollouts for each; null: behind all of them. By the recording where that is what tells them. */
  turns: readonly (number | null)[] | ((recording: SessionRecording) => number[]);
  sampled: { samples: number; atOnce: number; rendered: boolean; model: string | null; edit: string | null; engine: EngineFlags } | null;
};

/** `source`: the rollout that was replayed. */
export type MadeReplays = { path: string; source: RolloutRecord; records: RolloutRecord[] };

/** `name`: as `alidade show` takes it. Throws what is wrong with the order before a sandbox is made. */
export async function makeReplays(
  name: string | undefined,
  { verb, flags, wanted }: { verb: string; flags: ReplayFlags; wanted: WantedReplay },
  signal: AbortSignal,
): Promise<MadeReplays> {
  const note = (text: string): void => say(`  ${text}`);
  const from = await runFolderOf(flags.run);
  const trajectory = await findTrajectory(from, name, note);
  const source = await findRecord(from, trajectory);
  if (source === null)
    throw new AlidadeError("not_found", `${trajectory.session_id} is no rollout of a run: it has no sandbox that could be made again`, {
      param: "rollout",
    });
  const store = new DiskStore(RunFolder.sessions(from));
  const recording = toRecording(trajectory.session_id, await store.read(trajectory.session_id));
  const kept = await openKeptRun(from, { note, only: source.task_id, overcommit: flags.overcommit === true }, signal);
  const task = kept.tasks.get(source.task_id);
  if (task === undefined)
    throw new AlidadeError("not_found", `task ${source.task_id} of rollout ${source.rollout_id} is not among the run's tasks any more`, {
      param: "tasks",
    });
  const { sampled } = wanted;
  const config = sampled === null ? withoutModel(kept.config) : await withEngines(kept.config, sampled.engine);
  const harness = await harnessOf(config);
  await using opened = sampled === null ? noEngines : await openEngines(config, signal);
  const run_id = newId("run").slice(0, 11);
  const path = join(flags.out, run_id);
  const engines = await Promise.all(opened.engines.map(({ engine }) => engine.probe(signal)));
  const turns = typeof wanted.turns === "function" ? wanted.turns(recording) : wanted.turns;
  const plans = turns.flatMap((turn) =>
    toReplayPlans({
      ...{ run_id, record: source, recording, task, harness, turn },
      ...(turns.length > 1 && { group: `turn${turn}` }),
      sampled: sampled && { ...sampled, engines },
      words: flags.words,
      unrepeatable: flags.unrepeatable === true,
    }),
  );
  await using folder = await RunFolder.open(path);
  await folder.describe({ run_id, alidade_version: version, config, made_by: `alidade ${verb}` });
  // A prompt that is sampled anew shows the recorded pictures. Calls answered from the record keep their experts.
  const cuts = turns.map((turn) => cutAfter(recording, turn));
  const replayed = recording.calls.filter((call) => cuts.some((cut) => isAnswered(cut, call)));
  const numbers = replayed.flatMap(({ finished }) => [finished?.routing, finished?.support].flatMap((one) => (one ? [one.sha256] : [])));
  copyNamed([...namedPictures(trajectory), ...numbers], store.media, new DiskStore(RunFolder.sessions(path)).media);
  const atOnce = sampled?.atOnce ?? 1;
  const slots = makeSlots({ init: atOnce, run: atOnce, post: atOnce });
  const place = {
    run_id,
    path,
    records: RunFolder.records(path),
    folder,
    engines: opened.engines,
    backend: kept.backend,
    slots,
    graders: kept.graders,
  };
  const told = {
    watching: unwatched,
    onProgress: (event: { type: string; text?: string }) => void (event.text && note(event.text)),
    onLeftOut: () => undefined,
  };
  await using machine = await openMachine({ ...config, teacher: null }, { ...place, ...told }, signal);
  const rollouts = rolloutsOn(machine.setup);
  const outcomes = await Promise.all(plans.map((plan) => rollouts.submit(plan, signal)));
  return { path, source, records: outcomes.map(({ record }) => record) };
}

const noEngines = { engines: [], [Symbol.asyncDispose]: async () => undefined };

/** Nothing is sampled. */
function withoutModel(config: Config): Config {
  return { ...config, purpose: "eval", model: null, routes: [] };
}

/** The run's engines, or those of the flags in their place. */
async function withEngines(config: Config, flags: EngineFlags): Promise<Config> {
  if (flags.engine.length === 0) return config;
  const { engine: _engine, engines: _engines, routes: _routes, ...rest } = config;
  return loadConfig({ env: {}, defaults: rest, overrides: enginesOf(flags) });
}
