/** What a line of results carries beside its rows: trajectories, the records of their attempts, or the rows of an export format. */
import { Writable } from "node:stream";
import { z } from "zod";
import { AlidadeError } from "../base/errors.ts";
import type { Media } from "../base/media/media.ts";
import { readJson } from "../base/schema/read-json.ts";
import { Trajectory } from "../base/schema/trajectory.ts";
import type { Exporter, ExportReport } from "../exporters/index.ts";
import { withoutExperts } from "../reconstruct/index.ts";
import { type Blobs, getAllPacked, getPacked, mediaOf, type PackedPicture, picturesNamedIn, unpackPictures } from "./blobs/index.ts";
import type { ResultRow, SetSpec } from "./ledger/index.ts";
import { isLeftOut, masked, oldestTrained, othersOfGroup } from "./stale-rows.ts";

export const DeliveryQuery = z.strictObject({
  payload: z
    .enum(["none", "rows", "trajectory", "record"])
    .default("none")
    .describe(
      "what comes with each result: nothing, rows of an export format, the whole trajectory, or that and the whole record of its attempt (verdict with evidence, sandbox, output)",
    ),
  format: z.string().default("flat").describe("the export format of the rows"),
  experts: z
    .stringbool()
    .default(false)
    .describe("rows name the experts that their tokens took, and the line carries their bytes (about a kilobyte a token)"),
  kept_sets: z
    .enum(["leave_out", "train"])
    .default("leave_out")
    .describe(
      "`train`: rows also have calls that were sampled with `top_p`, `top_k` or `min_p`, if their kept tokens are on record. The line then carries these tokens. Only for trainers that renormalise over them",
    ),
  step: z.coerce
    .number()
    .int()
    .optional()
    .describe("the trainer's policy step, against which lag and staleness are held (default: the one in force when the result ended)"),
});
export type DeliveryQuery = z.infer<typeof DeliveryQuery>;

/** Fields of a line, as JSON text behind a comma; empty where nothing is asked for. */
export type PayloadText = (rows: readonly ResultRow[], signal: AbortSignal) => Promise<string>;

/**
 * Bytes of a line's rows, with the pictures and experts that they name. The line is one text, of which V8 holds half a gigabyte, and
 * the trainer reads it as one, too.
 */
const longestRows = 128 * 1024 * 1024;

/**
 * Throws `request_invalid` if the format cannot be served, or not with these options. Loads the formats if rows are asked for.
 * `longest`: most bytes of a line's rows.
 */
export async function deliveryOf(
  blobs: Blobs,
  { payload, format, experts, kept_sets }: DeliveryQuery,
  isWhole: boolean,
  spec: SetSpec,
  longest = longestRows,
): Promise<PayloadText> {
  if (payload === "none") return async () => "";
  if (payload === "trajectory") return async (rows) => `,"trajectories":[${(await textsOf(blobs, rows)).join(",")}]`;
  if (payload === "record") return async (rows) => recordsText(await Array.fromAsync(rows, (row) => linesOf(blobs, row)));
  const { emptyReport, exporterNamed, leaveOutRollout } = await import("../exporters/index.ts");
  const exporter = exporterNamed(format);
  assertServable(exporter, isWhole, spec);
  const own = kept_sets === "train" ? { kept_sets } : {};
  if (kept_sets === "train" && !exporter.saysSupport)
    throw new AlidadeError("request_invalid", `the format ${exporter.name} has no field for kept tokens: ask without kept_sets=train`, {
      param: "kept_sets",
    });
  return async (rows, signal) => {
    const others = othersOfGroup(rows, spec);
    const stale = rows.filter((row) => isLeftOut(row, spec));
    const given = rows.filter((row) => !stale.includes(row));
    const packed = await Array.fromAsync(given, (row) => linesOf(blobs, row));
    const all = packed.flatMap(([text = "null"]) => (text === "null" ? [] : [Trajectory.parse(readJson(text))]));
    const pictures = packed.flatMap(unpackPictures);
    const routed = experts ? all : all.map(withoutExperts);
    const trajectories = routed.map((one) => (others.has(one.rollout_id ?? "") ? masked(one) : one));
    const oldestStep = exporter.objective === "rl" ? oldestTrained(rows, spec) : null;
    const order = { own, oldestStep, media: mediaOf(pictures), signal };
    const rowsOf = await exported(exporter, trajectories, order, longest);
    const beside = exporter.namesPictures || exporter.saysSupport ? picturesNamedIn(rowsOf.lines, pictures) : [];
    const fits = rowsOf.bytes + beside.reduce((sum, { base64 }) => sum + base64.length, 0) <= longest;
    const report = fits ? rowsOf.report : { ...emptyReport(), trajectories: trajectories.length };
    // The lines after it come as they are.
    if (!fits) for (const _ of trajectories) leaveOutRollout(report, "line_too_long");
    for (const _ of stale) leaveOutRollout(report, "stale_policy");
    const rowsText = fits ? rowsOf.lines.join(",") : "";
    return `,"rows":[${rowsText}],"report":${JSON.stringify(report)}${picturesText(fits ? beside : [])}`;
  };
}

function assertServable(exporter: Exporter, isWhole: boolean, { group_versions, purpose }: SetSpec): void {
  const refuse = (message: string) => new AlidadeError("request_invalid", message, { param: "format" });
  if (purpose === "eval" && exporter.objective !== "any")
    throw refuse(
      `the set is an evaluation, and the format ${exporter.name} is for training: take payload=none or payload=trajectory, or the format atif`,
    );
  if (exporter.extension !== "jsonl")
    throw refuse(`the format ${exporter.name} is no JSON lines: take payload=trajectory, or another format`);
  if (group_versions === "same" && !isWhole)
    throw refuse(`the set's group_versions is same, which only whole groups can keep: ask with whole_groups=true, or with payload=none`);
  if (exporter.wholeGroups && !isWhole) throw refuse(`the format ${exporter.name} reads whole groups: ask with whole_groups=true`);
}

/** In the order of the rows; `null` where no call was recorded. */
async function textsOf(blobs: Blobs, rows: readonly ResultRow[]): Promise<string[]> {
  const texts: string[] = [];
  for (const { payload } of rows) texts.push(payload === null ? "null" : await getPacked(blobs, payload));
  return texts;
}

/** The trajectory and its record, each as JSON; a node of an earlier version kept no record there. */
async function linesOf(blobs: Blobs, { payload }: ResultRow): Promise<string[]> {
  return payload === null ? [] : await getAllPacked(blobs, payload);
}

function recordsText(all: string[][]): string {
  const [trajectories, records] = [0, 1].map((at) => all.map((lines) => lines[at] ?? "null").join(","));
  return `,"trajectories":[${trajectories}],"records":[${records}]${picturesText(all.flatMap(unpackPictures))}`;
}

/** Those that the line's trajectories or rows name, in base64 by their hash; nothing where there are none. */
function picturesText(pictures: readonly PackedPicture[]): string {
  if (pictures.length === 0) return "";
  return `,"pictures":${JSON.stringify(Object.fromEntries(pictures.map(({ sha256, base64 }) => [sha256, base64])))}`;
}

/** `lines`: none if their `bytes` are more than `longest`. */
async function exported(
  exporter: Exporter,
  trajectories: Trajectory[],
  options: { own: Record<string, unknown>; oldestStep: number | null; media: Pick<Media, "read">; signal: AbortSignal },
  longest: number,
): Promise<{ lines: string[]; report: ExportReport; bytes: number }> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  const output = new Writable({
    write(piece: Buffer, _encoding, done) {
      bytes += piece.length;
      if (bytes <= longest) pieces.push(piece);
      else pieces.length = 0;
      done();
    },
  });
  const { exportTrajectories } = await import("../exporters/index.ts");
  const report = await exportTrajectories(exporter, trajectories, output, { ...options, oldestStep: options.oldestStep ?? undefined });
  const lines = Buffer.concat(pieces).toString("utf8").split("\n");
  return { lines: lines.filter((line) => line !== ""), report, bytes };
}
