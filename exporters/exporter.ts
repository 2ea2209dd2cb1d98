/**
 * An exporter writes trajectories in the form that a trainer reads. The parts that most of them are made of stand beside
 * it: `rows.ts` selects the token rows, `reconstruct/rows/alignment-families.ts` lines them up as the families of trainers
 * expect, `scored-rows.ts` and `positional.ts` keep the places of rollouts in their groups, and `source.ts` reads trajectories one by one or by whole groups, never holding more than one of them in memory.
 */
import { z } from "zod";
import { AlidadeError } from "../base/errors.ts";
import type { SelectOptions } from "../reconstruct/index.ts";
import type { TrajectorySource } from "./source/source.ts";

export type ExportReport = {
  trajectories: number;
  /** Written, dummy rows included. */
  rows: number;
  /** Rows with a mask of zeros that only keep a place in a positional group. */
  dummy_rows: number;
  /** Reason -> calls that no row trains or says. */
  left_out: Record<string, number>;
  /** Reason -> rollouts (whole trajectories) of which nothing was written. */
  left_out_rollouts: Record<string, number>;
  /** Reason -> whole groups of which nothing was written. */
  left_out_groups: Record<string, number>;
};

export const emptyReport = (): ExportReport => ({
  trajectories: 0,
  rows: 0,
  dummy_rows: 0,
  left_out: {},
  left_out_rollouts: {},
  left_out_groups: {},
});

/** What a format itself decides about its rows. */
export type FormatOptions = Partial<Pick<SelectOptions, "aggregation" | "objective" | "readsSupport" | "readsTemperatures" | "wholeTurns">>;

/** How rows are selected (`reconstruct/rows/select-rows.ts`), and: */
export type ExportOptions<Own = Record<string, unknown>> = Omit<SelectOptions, keyof FormatOptions> & {
  /** The exporter's own options, under the names of its schema. */
  own: Own;
};

export const proofs = ["trainer", "by_hand", "fields", "ours"] as const;

export interface Exporter {
  readonly name: string;
  /** What one row is, in one line. */
  readonly title: string;
  /** rl formats need logprobs and leave out a whole call where one is missing; sft formats need none. */
  readonly objective: "rl" | "sft" | "any";
  readonly extension: "jsonl" | "parquet";
  /** It has no token rows, so that options about their selection are refused. */
  readonly selects?: false;
  /** It reads whole groups, for which the run is copied once into a scratch file. */
  readonly wholeGroups?: true;
  /** It is an archive: attempts that a later one of the same rollout replaced stand in it too. */
  readonly everyAttempt?: true;
  /** Its rows have `media`: which picture stands where. Others leave out calls that saw one. */
  readonly saysPictures?: true;
  /** It names pictures by the hash of their bytes. Others get them as `data:` URLs. */
  readonly namesPictures?: true;
  /** Its rows can say that several paths share a prefix (selection `tree`); others refuse such a selection. */
  readonly saysPackedRows?: true;
  /** Its rows name the tokens that the sampling kept, so that calls with `top_p`, `top_k` or `min_p` can be trained. */
  readonly saysSupport?: true;
  /** It writes the temperature of each token, so that one unlike the trainer's is no reason to leave a call out. */
  readonly saysTemperatures?: true;
  readonly docs: {
    /** Where a mask or logprob stands in relation to its token (`reconstruct/rows/alignment-families.ts`). */
    alignment: "none" | "A" | "B" | "C" | "D" | "E" | "tree";
    /** What happens where the trainer wants a fixed number of rows: how it pads, selects or refuses; its dummy rows. */
    rows: string;
    /** Fields that a teacher's logprobs have in a row (`alidade score`). Absent: the format has none for them. */
    teacher?: string;
    /** The field and form in which its loader returns the experts of tokens. Absent: its rows do not name experts. */
    experts?: string;
    /** How its loader returns the tokens that the sampling kept. Absent: its rows do not name them. */
    support?: string;
    /** Why its rows leave out calls that saw a picture, if the format itself is the reason. */
    pictures?: string;
    /** Module of the Python package (`clients/python`) that makes the trainer's own objects of the rows; null where the file is all. */
    loader: string | null;
    /**
     * What shows that the trainer reads such a file. trainer: its own code of this version reads it in CI. by_hand: it was
     * held against the trainer's source. fields: its documented fields were followed. ours: a reader of ours.
     */
    proof: { how: (typeof proofs)[number]; by: string };
  };
  /** Options that only this format has; they are flags of `alidade export`, underscores as hyphens. */
  readonly options: z.ZodObject;
  /** A string is one line of the file, without its newline; bytes are written as they are. Fills `report` on the way. */
  write(source: TrajectorySource, options: ExportOptions, report: ExportReport): AsyncIterable<string | Uint8Array>;
}

/** What a user's file may leave out. */
export type ExporterPlugIn = Omit<Exporter, "options" | "docs"> & Partial<Pick<Exporter, "options" | "docs">>;

type Definition<Own extends z.ZodObject> = Omit<Exporter, "options" | "write"> & {
  options: Own;
  write(source: TrajectorySource, options: ExportOptions<z.infer<Own>>, report: ExportReport): AsyncIterable<string | Uint8Array>;
};

export const noOptions = z.strictObject({});

/** Gives `write` the exporter's own options parsed by its schema; throws `config_invalid` naming the wrong one. */
export function defineExporter<Own extends z.ZodObject>(definition: Definition<Own>): Exporter {
  return {
    ...definition,
    write: (source, options, report) => definition.write(source, { ...options, own: parseOwn(definition, options.own) }, report),
  };
}

function parseOwn<Own extends z.ZodObject>({ name, options }: Definition<Own>, values: Record<string, unknown>): z.infer<Own> {
  const parsed = options.safeParse(values);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const field = issue?.code === "unrecognized_keys" ? issue.keys.join(", ") : (issue?.path.join(".") ?? "");
  throw new AlidadeError("config_invalid", `the export format ${name} has a wrong option ${field}: ${issue?.message}`, { param: field });
}
