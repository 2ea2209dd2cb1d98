/** Writes a run's trajectories in the form of one exporter. */
import { tmpdir } from "node:os";
import type { Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { AlidadeError } from "../base/errors.ts";
import { type Media, withBytes } from "../base/media/media.ts";
import type { Message } from "../base/schema/message.ts";
import type { Attempt, Trajectory } from "../base/schema/trajectory.ts";
import { defaultSelectOptions, selectionNamed } from "../reconstruct/index.ts";
import { type Exporter, type ExportOptions, type ExportReport, emptyReport } from "./exporter.ts";
import { leaveOutRollout } from "./shapes/left-out.ts";
import { eachRollout } from "./source/each-rollout.ts";
import { toSource } from "./source/source.ts";

/**
 * Writes trajectories in a trainer's form and ends the output (standard output stays open). Memory holds one trajectory at
 * a time, and a slow output slows the reading. A format that needs whole groups reads them back from a file in `scratch`
 * (about the size of the run; removed when the process ends). Returns what was written and what was left out, by reason.
 * When it throws (a broken output, an aborted signal), the output is destroyed and its file is incomplete.
 *
 * A rollout that was run again is written by its last attempt, and a team's sessions as one rollout. This must be known
 * before the first line is written: for trajectories that are no array, `attempts` gives the heads of all. `media`: where the
 * bytes of pictures lie; a format that writes them itself fails without. `onPart`: called with each line,
 * without its newline, or with bytes.
 *
 *     const report = await exportTrajectories(flat, readTrajectories(file), createWriteStream("rows.jsonl"));
 */
export async function exportTrajectories(
  exporter: Exporter,
  trajectories: AsyncIterable<Trajectory> | Iterable<Trajectory>,
  output: Writable,
  options: Partial<ExportOptions> & {
    signal?: AbortSignal;
    scratch?: string;
    attempts?: AsyncIterable<Attempt> | Iterable<Attempt>;
    media?: Pick<Media, "read">;
    onPart?: (part: string | Uint8Array) => void;
  } = {},
): Promise<ExportReport> {
  const report = emptyReport();
  const {
    signal,
    scratch = tmpdir(),
    attempts = Array.isArray(trajectories) ? trajectories : [],
    media = null,
    onPart,
    ...given
  } = options;
  const settings: ExportOptions = {
    strategy: given.strategy ?? defaultSelectOptions.strategy,
    maxTokens: given.maxTokens ?? defaultSelectOptions.maxTokens,
    allowGrammar: given.allowGrammar ?? defaultSelectOptions.allowGrammar,
    cutOff: given.cutOff ?? defaultSelectOptions.cutOff,
    unmeasured: given.unmeasured ?? defaultSelectOptions.unmeasured,
    leaveOut: given.leaveOut ?? defaultSelectOptions.leaveOut,
    temperature: given.temperature ?? null,
    oldestStep: given.oldestStep ?? null,
    readsImages: exporter.saysPictures ?? false,
    own: given.own ?? {},
  };
  assertSayable(exporter, settings, given);
  const onSuperseded = (): void => leaveOutRollout(report, "superseded");
  const all = counted(exporter.namesPictures ? trajectories : withPictures(trajectories, media), report);
  // Groups are read after a pass over the whole run, which knows the last attempts itself.
  const isAsItIs = exporter.everyAttempt || exporter.wholeGroups;
  const source = toSource(isAsItIs ? all : eachRollout(all, attempts, { scratch, onSuperseded }), { scratch, onSuperseded });
  const chunks = toChunks(exporter.write(source, settings, report), onPart);
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

async function* withPictures(
  trajectories: AsyncIterable<Trajectory> | Iterable<Trajectory>,
  media: Pick<Media, "read"> | null,
): AsyncIterable<Trajectory> {
  for await (const trajectory of trajectories) {
    const ids = Object.keys(trajectory.messages);
    const shown = withBytes(Object.values(trajectory.messages), media);
    yield { ...trajectory, messages: Object.fromEntries(ids.map((id, at) => [id, shown[at] as Message])) };
  }
}

async function* counted(trajectories: AsyncIterable<Trajectory> | Iterable<Trajectory>, report: ExportReport): AsyncIterable<Trajectory> {
  for await (const trajectory of trajectories) {
    report.trajectories++;
    yield trajectory;
  }
}

async function* toChunks(
  parts: AsyncIterable<string | Uint8Array>,
  onPart: (part: string | Uint8Array) => void = () => undefined,
): AsyncIterable<string | Uint8Array> {
  for await (const part of parts) {
    onPart(part);
    yield typeof part === "string" ? `${part}\n` : part;
  }
}
