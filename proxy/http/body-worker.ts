/**
 * Reads large bodies for `BodyReader` on a thread of its own. A body with numbers that keep their digits cannot be passed
 * between threads as a value, so it is only checked here.
 */
import { setPriority } from "node:os";
import { parentPort } from "node:worker_threads";
import { asAlidadeError } from "../../base/errors.ts";
import { readWhole } from "../../base/wire/growing-json.ts";
import { mayHaveWrittenNumbers } from "../../base/wire/written-numbers.ts";
import type { Question, ReadAnswer } from "./body-reader.ts";

// Lower priority than the main thread. On other systems this would change the whole process.
if (process.platform === "linux") setPriority(10);

parentPort?.on("message", (question: Question) => {
  const bytes = Buffer.from(question.bytes);
  const answer: ReadAnswer = { id: question.id, bytes: question.bytes, ...read(bytes, question) };
  parentPort?.postMessage(answer, [question.bytes]);
});

function read(bytes: Buffer, { field, keys }: Question): Pick<ReadAnswer, "read" | "error"> {
  try {
    const whole = readWhole(bytes, field, keys);
    return mayHaveWrittenNumbers(bytes.toString("latin1")) ? { read: null } : { read: whole };
  } catch (error) {
    const { code, message, status, param } = asAlidadeError(error, "request_invalid");
    return { error: { code, message, status, param } };
  }
}
