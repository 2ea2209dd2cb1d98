/** The list of exporters: adding one is a file and a line here. */
import { tmpdir } from "node:os";
import type { Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { AlidadeError } from "../base/errors.ts";
import { registryOf } from "../base/host/plug-ins.ts";
import type { Attempt, Trajectory } from "../base/schema/trajectory.ts";
import { defaultSelectOptions, selectionNamed } from "../reconstruct/index.ts";
import { agentLightning } from "./agent-lightning.ts";
import { areal } from "./areal.ts";
import { atif } from "./atif.ts";
import { canonical } from "./canonical.ts";
import { chat } from "./chat.ts";
import { dpo } from "./dpo.ts";
import {
  defineExporter,
  type Exporter,
  type ExporterPlugIn,
  type ExportOptions,
  type ExportReport,
  emptyReport,
  noOptions,
} from "./exporter.ts";
import { flat } from "./flat.ts";
import { harbor } from "./harbor.ts";
import { miles } from "./miles.ts";
import { nemoGym } from "./nemo-gym.ts";
import { nemoRl } from "./nemo-rl.ts";
import { openenv } from "./openenv.ts";
import { openrlhf } from "./openrlhf.ts";
import { parquet } from "./parquet.ts";
import { primeRl } from "./prime-rl.ts";
import { leaveOutRollout } from "./shapes/left-out.ts";
import { skyrl } from "./skyrl.ts";
import { slime } from "./slime.ts";
import { eachRollout } from "./source/each-rollout.ts";
import { toSource } from "./source/source.ts";
import { tinker } from "./tinker.ts";
import { trlAsync } from "./trl-async.ts";
import { trlDpo } from "./trl-dpo.ts";
import { trlGrpo } from "./trl-grpo.ts";
import { trlSft } from "./trl-sft.ts";
import { verifiers } from "./verifiers.ts";
import { verl } from "./verl.ts";

export type { Exporter, ExporterPlugIn, ExportOptions, ExportReport } from "./exporter.ts";
export { type DifferentPrompts, describedPrompts, GroupPrompts, type PromptedAttempt, promptsOf } from "./source/group-prompts.ts";

export { leaveOutRollout };

export const exporters = [
  canonical,
  flat,
  parquet,
  chat,
  dpo,
  verl,
  slime,
  miles,
  trlGrpo,
  trlAsync,
  trlSft,
  trlDpo,
  verifiers,
  primeRl,
  nemoGym,
  nemoRl,
  skyrl,
  openrlhf,
  areal,
  tinker,
  openenv,
  agentLightning,
  atif,
  harbor,
] as const satisfies readonly Exporter[];

export const exporterRegistry = registryOf<ExporterPlugIn, Exporter>({
  noun: "export format",
  param: "format",
  list: exporters,
  members: {
    name: "text",
    title: "text",
    objective: "text",
    extension: "text",
    selects: "boolean?",
    wholeGroups: "boolean?",
    everyAttempt: "boolean?",
    saysPackedRows: "boolean?",
    saysTemperatures: "boolean?",
    docs: "object?",
    options: "object?",
    write: "function",
  },
  made: (loaded) =>
    defineExporter({
      docs: { alignment: "none", rows: "", loader: null, proof: { how: "ours", by: "" } },
      options: noOptions,
      ...loaded,
      write: (...how) => loaded.write(...how),
    }),
});
export const exporterNamed = exporterRegistry.named;

/**
 * Writes trajectories in a trainer's form and ends the output (standard output stays open). Memory holds one trajectory at
 * a time, and a slow output slows the reading. A format that needs whole groups reads them back from a file in `scratch`
 * (about the size of the run; removed when the process ends). Returns what was written and what was left out, by reason.
 * When it throws (a broken output, an aborted signal), the output is destroyed and its file is incomplete.
 *
 * A rollout that was run again is written by its last attempt, and a team's sessions as one rollout. This must be known
 * before the first line is written: for trajectories that are no array, `attempts` gives the heads of all.
 *
 *     const report = await exportTrajectories(flat, readTrajectories(file), createWriteStream("rows.jsonl"));
 */
export async function exportTrajectories(
  exporter: Exporter,
  trajectories: AsyncIterable<Trajectory> | Iterable<Trajectory>,
  output: Writable,
  options: Partial<ExportOptions> & { signal?: AbortSignal; scratch?: string; attempts?: AsyncIterable<Attempt> | Iterable<Attempt> } = {},
): Promise<ExportReport> {
  const report = emptyReport();
  const { signal, scratch = tmpdir(), attempts = Array.isArray(trajectories) ? trajectories : [], ...given } = options;
  const settings: ExportOptions = {
    strategy: given.strategy ?? defaultSelectOptions.strategy,
    maxTokens: given.maxTokens ?? defaultSelectOptions.maxTokens,
    allowGrammar: given.allowGrammar ?? defaultSelectOptions.allowGrammar,
    cutOff: given.cutOff ?? defaultSelectOptions.cutOff,
    unmeasured: given.unmeasured ?? defaultSelectOptions.unmeasured,
    leaveOut: given.leaveOut ?? defaultSelectOptions.leaveOut,
    temperature: given.temperature ?? null,
    oldestStep: given.oldestStep ?? null,
    own: given.own ?? {},
  };
  assertSayable(exporter, settings, given);
  const onSuperseded = (): void => leaveOutRollout(report, "superseded");
  const all = counted(trajectories, report);
  // Groups are read after a pass over the whole run, which knows the last attempts itself.
  const isAsItIs = exporter.everyAttempt || exporter.wholeGroups;
  const source = toSource(isAsItIs ? all : eachRollout(all, attempts, { scratch, onSuperseded }), { scratch, onSuperseded });
  const chunks = toChunks(exporter.write(source, settings, report));
  await pipeline(chunks, output, { end: output !== process.stdout, ...(signal && { signal }) });
  return report;
}

/** An option that a format has no use for would seem to have been obeyed. */
function assertSayable(exporter: Exporter, { strategy }: ExportOptions, given: Partial<ExportOptions>): void {
  const useless = exporter.selects === false ? aboutRows.find(([name]) => given[name] !== undefined) : undefined;
  if (useless !== undefined)
    throw new AlidadeError("config_invalid", `the export format ${exporter.name} has no rows to select: leave out ${useless[1]}`, {
      param: useless[0],
    });
  if (exporter.objective === "sft" && (given.oldestStep ?? null) !== null)
    throw new AlidadeError(
      "config_invalid",
      `the export format ${exporter.name} is for imitation, which knows no staleness: leave out --oldest-step`,
      {
        param: "oldestStep",
      },
    );
  const selection = typeof strategy === "string" ? selectionNamed(strategy) : strategy;
  if (selection.packed && !exporter.saysPackedRows)
    throw new AlidadeError("config_invalid", `the export format ${exporter.name} cannot say rows of the selection ${selection.name}`, {
      param: "select",
    });
}

/** Under the names of the library and of the command line. */
const aboutRows = [
  ["strategy", "--select"],
  ["maxTokens", "--max-tokens"],
  ["temperature", "--temperature"],
  ["oldestStep", "--oldest-step"],
  ["allowGrammar", "--allow-grammar"],
  ["leaveOut", "--leave-out"],
] as const satisfies [keyof ExportOptions, string][];

async function* counted(trajectories: AsyncIterable<Trajectory> | Iterable<Trajectory>, report: ExportReport): AsyncIterable<Trajectory> {
  for await (const trajectory of trajectories) {
    report.trajectories++;
    yield trajectory;
  }
}

async function* toChunks(parts: AsyncIterable<string | Uint8Array>): AsyncIterable<string | Uint8Array> {
  for await (const part of parts) yield typeof part === "string" ? `${part}\n` : part;
}
