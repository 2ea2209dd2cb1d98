/** Flags that choose a teacher, for the commands that make rollouts. */
import type { Command } from "commander";
import { toNumber } from "../command-line.ts";

export type TeacherFlags = { teacher?: string; teacherModel?: string; teacherTopK?: number };

export function addTeacherFlags(command: Command): Command {
  return command
    .option("--teacher <url>", "server of a teacher, which scores each rollout when it is graded (`teacher` of the run file has more)")
    .option("--teacher-model <name>", "model of that server that scores")
    .option("--teacher-top-k <number>", "keep also so many of its likeliest tokens at each place", toNumber);
}

/** Returns `teacher` in the form of the run file; {} if no flag is given. */
export function teacherOf({ teacher: engine, teacherModel: model, teacherTopK: top_k }: TeacherFlags): { teacher?: object } {
  return engine === undefined && model === undefined && top_k === undefined ? {} : { teacher: { engine, model, top_k } };
}
