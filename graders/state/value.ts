/** The value that a check looks at: of a file, of a place in JSON, of a query, or of a service's answer. */
import { AlidadeError, messageOf } from "../../base/errors.ts";
import { readJson } from "../../base/schema/read-json.ts";
import { queryRows } from "../bounded/query-rows.ts";
import { isWorkbook } from "../bounded/read-workbook.ts";
import { valueAt } from "../rules/condition.ts";
import { answersWell, mostAnswerBytes, type ServiceReply } from "../work/ask-service.ts";
import { mostBytes } from "../work/layer-contents.ts";
import { type DatabaseRead, whyNotCommitted } from "./database.ts";

export type StateReading = { value: unknown } | { problem: string };

/** Says what a query gives that SQLite could not run. */
export type OnQueryError = (error: string) => StateReading | Promise<StateReading>;

export async function valueIn(
  read: DatabaseRead,
  { file, json, query }: { file: string; json?: string | undefined; query?: string | undefined },
  onError: OnQueryError,
  signal: AbortSignal,
): Promise<StateReading> {
  const { content, log } = read;
  if (content === "too large") return { problem: `the files that are looked at have more than ${mostBytes} bytes` };
  if (content === null) return { value: undefined };
  if (query !== undefined) {
    const why = whyNotCommitted(read);
    if (why !== null) return { problem: why };
    if (isNamedWorkbook.test(file) && !isWorkbook(content)) return onError("it is no OpenDocument workbook");
    const rows = await queryRows(content, Buffer.isBuffer(log) ? log : null, query, signal);
    return "error" in rows ? onError(rows.error) : { value: rows.rows };
  }
  return json === undefined ? { value: content.toString("utf8") } : jsonAt(content.toString("utf8"), json);
}

/** A database under this name could have the tables that a workbook is read as. */
const isNamedWorkbook = /\.ods$/i;

function jsonAt(text: string, json: string): StateReading {
  try {
    return { value: valueAt(readJson(text), json) };
  } catch (error) {
    return { problem: `it is no JSON: ${messageOf(error).slice(0, 200)}` };
  }
}

/**
 * The status 404 means that the value is not there. Throws `grader_error` for another failure, which says nothing about the work.
 * A too large answer fails the check, because an agent can make one.
 */
export function answeredValue(reply: ServiceReply, json: string | undefined): StateReading {
  if ("problem" in reply) return { problem: reply.problem };
  const { status, body } = reply;
  if (status === 404) return { value: undefined };
  if (!answersWell(reply))
    throw new AlidadeError("grader_error", `a service answered with the status ${status}: ${body?.slice(0, 200) ?? "a large answer"}`);
  if (body === null) return { problem: `the answer has more than ${mostAnswerBytes} bytes` };
  return json === undefined ? { value: body } : jsonAt(body, json);
}
