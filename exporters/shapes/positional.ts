/**
 * Rows for trainers that know a group by its position: the same number of rows for every group, one for each rollout,
 * group after group. Such a format has one row a rollout: of several, the one with the most trained tokens is taken.
 */
import { z } from "zod";
import type { GroupReason, RolloutReason } from "../../base/schema/reasons/left-out.ts";
import type { Trajectory } from "../../base/schema/trajectory.ts";
import type { FlatRow } from "../../reconstruct/index.ts";
import { type ExportOptions, type ExportReport, emptyReport, type FormatOptions } from "../exporter.ts";
import { mediaWithin } from "../rows/media.ts";
import { routingUpTo } from "../rows/routing.ts";
import { trainedCalls } from "../rows/row-calls.ts";
import { rowsOf } from "../rows/rows.ts";
import type { TrajectoryGroup, TrajectorySource } from "../source/source.ts";
import { hashOfPrompt, mostCommon, type PromptOf } from "./common-prompt.ts";
import { addLeftOut, leaveOutGroup, leaveOutRollout } from "./left-out.ts";
import { placeOf, whyUnscored } from "./scored-rows.ts";

/** For the schema of a positional format's own options. */
export const groupSize = z
  .number()
  .int()
  .positive()
  .optional()
  .describe(
    "rollouts of a group that the trainer expects; surplus ones are dropped from the end (default: the size that the group was started with)",
  );

export type SamplePlace = {
  /** From 0, counting the groups that are written. */
  group_index: number;
  /** From 0, in the group. */
  position: number;
  /** null: the place belongs to a rollout that was not measured; its row is a dummy. */
  reward: number | null;
};

export type Positional<Line> = {
  groupSize: number | undefined;
  /**
   * Where a rollout was not measured: `drop` leaves out its whole group, for the format cannot say so; `unscored` fills
   * its place with a dummy row without a reward, for a trainer that keeps such a row out of the baseline.
   */
  missing: "drop" | "unscored";
  /**
   * By which prompt the trainer knows a group: of each rollout a row is taken that begins with the group's most common
   * one, and a group with a rollout that has none is left out as `prompts_differ`. Absent: it does not look.
   */
  promptOf?: PromptOf;
  /** Why the format cannot say a row with the group's prompt; null where it can. Such a row leaves out the group. */
  unsayable?: (row: FlatRow) => UnsayableReason | null;
  format?: FormatOptions;
  toLine(row: FlatRow, trajectory: Trajectory, place: SamplePlace): Line;
};

type UnsayableReason = RolloutReason & GroupReason;

type Candidate = { row: FlatRow; trajectory: Trajectory; reward: number | null };

/** The lines of each group that can be written whole; the other groups are in the report. Holds the lines of one group. */
export async function* positionalGroups<Line>(
  source: TrajectorySource,
  options: ExportOptions<unknown>,
  report: ExportReport,
  positional: Positional<Line>,
): AsyncIterable<Line[]> {
  let group_index = 0;
  for await (const group of source.groups()) {
    const size = positional.groupSize ?? group.size ?? group.members.length;
    const lines = await linesOf(group, { size, group_index, options, report, positional });
    if (typeof lines === "string") leaveOutGroup(report, lines);
    else {
      group_index++;
      report.rows += lines.length;
      yield lines;
    }
  }
}

type BatchContext<Line> = {
  size: number;
  group_index: number;
  options: ExportOptions<unknown>;
  report: ExportReport;
  positional: Positional<Line>;
};

/** The context for one group, with the hash of its first prompt; null where the trainer does not look. */
type GroupContext<Line> = BatchContext<Line> & { prompt: string | null };

async function promptOfGroup<Line>({ members }: TrajectoryGroup, context: BatchContext<Line>): Promise<string | null> {
  const { promptOf } = context.positional;
  if (promptOf === undefined) return null;
  // The writing pass reports what is left out.
  const unread = { ...context, report: emptyReport() };
  const prompts: Set<string>[] = [];
  for (const member of members) {
    const hashes = new Set<string>();
    for (const row of rowsOfRollout(await member.read(), unread)) hashes.add(hashOfPrompt(promptOf(row)));
    prompts.push(hashes);
  }
  return mostCommon(prompts);
}

/** The group's lines, or why it has none. */
async function linesOf<Line>(group: TrajectoryGroup, context: BatchContext<Line>): Promise<Line[] | GroupReason> {
  const { size, group_index, positional, report } = context;
  const inGroup = { ...context, prompt: await promptOfGroup(group, context) };
  const lines: Line[] = [];
  let unsayable: UnsayableReason | null = null;
  let dummies = 0;
  let spare: Candidate | null = null;
  const put = ({ row, trajectory, reward }: Candidate): void => {
    if (row.dummy) dummies++;
    lines.push(positional.toLine(row, trajectory, { group_index, position: lines.length, reward }));
  };
  for (const member of group.members) {
    const candidate = lines.length === size ? "over_group_size" : toCandidate(await member.read(), inGroup);
    if (candidate === "prompts_differ" || candidate === "first_turn_untrained") unsayable ??= candidate;
    if (typeof candidate === "string") leaveOutRollout(report, candidate);
    else put(candidate);
    if (typeof candidate !== "string") spare ??= toSpare(candidate);
  }
  const measured = lines.length;
  while (positional.missing === "unscored" && spare !== null && lines.length < size) put(spare);
  const short = dummies === lines.length ? "nothing_trained" : lines.length < size ? "incomplete" : null;
  const reason = unsayable ?? short;
  if (reason === null) report.dummy_rows += dummies;
  for (let at = 0; reason !== null && at < measured; at++) leaveOutRollout(report, "group_left_out");
  return reason ?? lines;
}

/** The rollout's one row, or why it has none. */
function toCandidate<Line>(trajectory: Trajectory, context: GroupContext<Line>): Candidate | RolloutReason {
  const { options, report, positional, prompt } = context;
  const whyUnfit = (row: FlatRow): UnsayableReason | null => {
    const isOther = prompt !== null && hashOfPrompt(positional.promptOf?.(row) ?? []) !== prompt;
    return isOther ? "prompts_differ" : (positional.unsayable?.(row) ?? null);
  };
  let unfit: UnsayableReason | null = null;
  let best: FlatRow | null = null;
  for (const row of rowsOfRollout(trajectory, context)) {
    const why = whyUnfit(row);
    if (why !== null && unfit !== "first_turn_untrained") unfit = why;
    const isBetter = why === null && (best === null || row.trained_tokens > best.trained_tokens);
    const dropped: FlatRow | null = isBetter ? best : row;
    if (isBetter) best = row;
    if (dropped !== null) addLeftOut(report, { other_row_of_rollout: trainedCalls(dropped) });
  }
  if (best === null && unfit !== null) return unfit;
  const row = best ?? placeOf(trajectory, options);
  if (typeof row === "string") return row;
  return whyUnscored(row) ?? whyUnfit(row) ?? { row, trajectory, reward: row.reward };
}

function rowsOfRollout<Line>(trajectory: Trajectory, { options, report, positional }: BatchContext<Line>): Iterable<FlatRow> {
  return rowsOf(trajectory, options, report, positional.format);
}

/** Its tokens hold another's place: mask 0, no reward. */
function toSpare({ row, trajectory }: Candidate): Candidate {
  return { row: maskedRow(row), trajectory, reward: null };
}

function maskedRow(row: FlatRow): FlatRow {
  const length = Math.min(row.token_ids.length, row.prompt_length + 1);
  const { media: _media, routing: _routing, ...rest } = row;
  return {
    ...rest,
    ...mediaWithin(row, 0, length),
    ...routingUpTo(row, length),
    token_ids: row.token_ids.slice(0, length),
    loss_mask: new Array<0>(length).fill(0),
    logprobs: new Array<null>(length).fill(null),
    segments: [],
    reward: null,
    trained_tokens: 0,
    weight: 0,
    dummy: true,
  };
}
