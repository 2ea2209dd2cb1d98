/**
 * Makes tasks of rows of questions: .jsonl, a list in .json, or .parquet. The grader compares the agent's last turn with the
 * row's answer.
 *
 *     {"question": "How many …?", "answer": "She has … #### 42"}
 *     {"problem": "Find …", "solution": "We have … $\\boxed{\\frac{1}{2}}$", "level": "Level 3"}
 */
import { stat } from "node:fs/promises";
import { basename } from "node:path";
import { Task } from "../../base/schema/task.ts";
import { loadEach } from "../load-each.ts";
import { type LocatedRow, readRows } from "../readers/read-rows.ts";
import { parseTask, taskError } from "../task-error.ts";
import type { TaskFormat } from "../task-format.ts";
import { answerOfRow, holdsQuestions, type MarkedAnswer, type QuestionRow, questionOf } from "./question-row.ts";

export const questions: TaskFormat = {
  name: "questions",
  title: "rows with question or problem, and answer or solution: .jsonl, a list in .json, or .parquet",

  async matches(path) {
    const found = await stat(path).catch(() => null);
    return found?.isFile() === true && (await holdsQuestions(path));
  },

  async load(path, options) {
    const { only } = options;
    const rows = await readRows(path, options);
    const tasks = await loadEach(
      only === undefined ? rows : rows.filter((row) => only.has(idOf(row, path))),
      ({ where }) => where,
      async (row) => toTask(row, path),
      options,
    );
    return tasks;
  },
};

function toTask(row: LocatedRow, path: string): Task {
  const { value, where } = row;
  if (!isObject(value)) throw taskError(where, "the row", "is no object with columns");
  const { text, mark } = answerOfRow(value, where);
  const task = {
    task_id: idOf(row, path),
    instruction: `${questionOf(value, where)}\n\n${ask[mark]}`,
    grader: { kind: "answer", math: text, take: mark },
    data_source: typeof value.data_source === "string" ? value.data_source : null,
    labels: labelsOf(value),
  };
  return parseTask(Task, task, where);
}

/** Asks for the form that the answers of the set itself have. */
const ask: Record<MarkedAnswer["mark"], string> = {
  hashes: "Reason step by step. End your last message with a line that holds four # signs and the final answer alone: #### ANSWER",
  boxed: "Reason step by step. End your last message with the final answer, and nothing else, inside \\boxed{}.",
};

function isObject(value: unknown): value is QuestionRow {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}

/** Returns the row's own id, else the file's name and the row's number, which errors show too. */
function idOf({ value, where }: LocatedRow, path: string): string {
  const own = isObject(value) ? [value.unique_id, value.id].find((id) => typeof id === "string" || typeof id === "number") : undefined;
  const number = /(\d+)\]?$/.exec(where)?.[1] ?? "0";
  return String(own ?? `${basename(path).replace(/\.\w+$/, "")}-${number}`)
    .replaceAll("/", "__")
    .replace(/[^\w.-]/g, "-")
    .replace(/^[^A-Za-z0-9]+/, "");
}

/** Columns by which people choose tasks. */
const labelled = ["level", "type", "subject", "category", "difficulty", "source", "split"];
/** A label is a word to filter by, not a text. */
const longestLabel = 200;

function labelsOf(row: QuestionRow): Record<string, string> {
  const words = labelled.map((name) => [name, row[name]] as const).filter(([, value]) => ["string", "number"].includes(typeof value));
  return Object.fromEntries(words.map(([name, value]) => [name, String(value).slice(0, longestLabel)]));
}
