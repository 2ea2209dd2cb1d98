/** Reads rows of questions with one answer, in the columns of GSM8K and of MATH. Refuses rows whose answer cannot be compared. */
import { boxedIn, hashedIn, longestMath } from "../../graders/index.ts";
import { columnsOf, rowFiles } from "../readers/read-rows.ts";
import { taskError } from "../task-error.ts";

export type QuestionRow = Record<string, unknown>;

const asks = ["question", "problem"];
const answers = ["answer", "solution"];

/** Whether a file of rows holds questions, by the columns of its first row. */
export async function holdsQuestions(path: string): Promise<boolean> {
  if (!rowFiles.test(path)) return false;
  const columns = await columnsOf(path);
  const has = (names: readonly string[]) => names.some((name) => columns.includes(name));
  return has(asks) && has(answers) && !has(["task_id", "instance_id"]);
}

/** Columns that belong to the question, or that hold the answers to choose from. */
const beside = ["choices", "options", "context", "passage", "table", "image", "images"];

/** Returns the question's text. Throws `task_invalid`. */
export function questionOf(row: QuestionRow, where: string): string {
  const more = beside.find((name) => row[name] !== undefined && row[name] !== null);
  if (more !== undefined) throw taskError(where, more, "stands beside the question: only questions that are whole are asked");
  const name = asks.find((one) => Object.hasOwn(row, one)) ?? "question";
  const text = row[name];
  if (typeof text === "string" && text.trim() !== "") return text.trim();
  throw taskError(where, name, `is ${JSON.stringify(text)?.slice(0, 100)}: write the question as text`);
}

export type MarkedAnswer = { text: string; mark: "boxed" | "hashes" };

/**
 * Returns the answer, and the mark by which the agent is asked for it. `answer` holds GSM8K's reasoning with `####`, or the
 * answer itself. Without `answer`, `solution` holds it behind `####` or in its last `\boxed{…}`. Throws `task_invalid`.
 */
export function answerOfRow(row: QuestionRow, where: string): MarkedAnswer {
  const name = answers.find((one) => row[one] !== undefined && row[one] !== null) ?? "answer";
  const given = row[name];
  if (typeof given === "number" && !isExact(given))
    throw taskError(where, name, `is ${given}, which may have lost digits: write it as text`);
  const text = typeof given === "number" ? String(given) : given;
  if (typeof text !== "string") throw taskError(where, name, `is ${JSON.stringify(given)?.slice(0, 100)}: one text or number is compared`);
  const hashed = hashedIn(text);
  const found =
    hashed === null
      ? { text: boxedIn(text) ?? plainAnswer(text, name), mark: "boxed" as const }
      : { text: hashed, mark: "hashes" as const };
  const answer = found.text?.trim() ?? "";
  if (answer === "") throw taskError(where, name, "holds no result: write it behind #### or into \\boxed{…}, or give it alone in answer");
  if (answer.length > longestMath) throw taskError(where, name, `has ${answer.length} characters: at most ${longestMath} are compared`);
  return { text: answer, mark: found.mark };
}

/** Whether the number is as the file has it. A file may hold more digits than a number keeps. Answers are written without exponents. */
function isExact(value: number): boolean {
  return Number.isInteger(value) ? Number.isSafeInteger(value) : /^-?[\d.]+$/.test(String(value));
}

/** A longer text explains the answer, and is none itself. */
const longestPlain = 200;

/** Returns a text that is itself the answer. null: a solution, or a text of several lines, explains it. */
function plainAnswer(text: string, name: string): string | null {
  return name === "answer" && text.length <= longestPlain && !text.trim().includes("\n") ? text : null;
}
