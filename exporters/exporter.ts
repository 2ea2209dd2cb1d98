/** An exporter writes trajectories in the form that a trainer reads. */
import type { Trajectory } from "../schema/trajectory.ts";

export type ExportReport = {
  trajectories: number;
  rows: number;
  /** reason -> count of what was left out (calls or whole trajectories). */
  left_out: Record<string, number>;
};

export interface Exporter {
  readonly name: string;
  readonly title: string;
  /** rl formats need logprobs and leave out a whole call where one is missing; sft formats need none. */
  readonly objective: "rl" | "sft" | "any";
  /** Lines of the output file, without newlines, each trajectory as it comes; `report` is filled on the way. */
  lines(trajectories: AsyncIterable<Trajectory>, options: ExportOptions, report: ExportReport): AsyncIterable<string>;
}

export type ExportOptions = {
  /** Tokens a row may have; longer ones keep their exact prefix up to a call boundary. */
  maxTokens: number | null;
  /** Take tokens that were sampled under a grammar: their logprobs hold under its mask only. */
  allowGrammar: boolean;
};
