/** Writes down what came of a generation, and then, off the critical path, where its prompt parts from its parent's. */
import type { AlidadeError } from "../../base/errors.ts";
import type { CallFinished } from "../../base/schema/session-log.ts";
import type { CallRun } from "../session/call-run.ts";
import type { Session } from "../session/session.ts";
import { decodeDifference } from "./decode-difference.ts";
import type { GenerationResult } from "./generation.ts";
import { keepNumbers } from "./numbers/keep-numbers.ts";
import { recordFinished } from "./record-finished.ts";
import type { CallSurroundings } from "./surroundings.ts";
import { toolTimes } from "./tool-times.ts";

/** Why the call failed, or null. Throws where it could not be written. */
export async function finish(
  session: Session,
  { call, pauses: all }: CallRun,
  result: GenerationResult,
  around: CallSurroundings,
): Promise<AlidadeError | null> {
  const { prompt, routed, supported, tries, served, failure, ...rest } = result;
  const now = Date.now();
  const pauses = all.filter((pause) => pause.to !== pause.from).map(({ from, to }) => ({ from, to: to ?? now }));
  const finished: CallFinished = {
    type: "call_finished",
    time: now,
    call_id: call.id,
    ...rest,
    ...keepNumbers(session, { routed, supported }),
    prompt_ids: prompt?.delta ?? null,
    ...(pauses.length > 0 ? { pauses } : {}),
  };
  const unfit = await recordFinished(session, tries, finished, prompt?.whole ?? null);
  const { outcome } = call;
  if (around.watcher && outcome) {
    const tools = toolTimes(call, session.call(call.begun.parent_call_id));
    around.watcher.call({ session_id: session.id, spec: session.spec, begun: call.begun, tries, tools, outcome });
  }
  if (served) {
    session.running.servedBy(call, served);
    const decoding = decodeDifference(session, served.slot, call);
    const place = `decoding where call ${call.id} parts from its parent`;
    session.running.inBackground(decoding.catch((error: unknown) => around.onError(error, place)));
  }
  return unfit ?? failure;
}
