/** What the original parsers of a set said of the recorded logs and of samples. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { marks } from "../../../../graders/parsers/swe/status-log.ts";
import type { RecordedLog } from "../recorded/recorded-log.ts";

export type RecordedAnswer = {
  log?: string;
  sample?: string;
  parser: string;
  /** null: the original raises an error. */
  statuses: Record<string, string> | null;
};

export function readRecorded(folder: string): { header: { commit?: string }; answers: RecordedAnswer[] } {
  const lines = readFileSync(join(folder, "recorded.jsonl"), "utf8").trim().split("\n");
  const [header, ...answers] = lines.map((line) => JSON.parse(line));
  return { header, answers };
}

const files = new Map<string, string[]>();

export function recordedLog({ log, sample }: Pick<RecordedAnswer, "log" | "sample">, samples: Record<string, string>): string {
  if (sample !== undefined) return samples[sample] as string;
  const [file = "", line = "1"] = (log as string).split(":");
  if (!files.has(file))
    files.set(
      file,
      readFileSync(join(import.meta.dirname, "../recorded", file), "utf8")
        .trim()
        .split("\n"),
    );
  return (JSON.parse(files.get(file)?.[Number(line) - 1] as string) as RecordedLog).log;
}

export const marked = (log: string): string => `${marks.start}\n${log}\n${marks.end}\n`;
