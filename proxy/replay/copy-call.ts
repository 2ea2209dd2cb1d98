/** Writes a recorded call into another session's log, as a call of that session which no engine was asked for. */

import { withoutBase } from "../../base/schema/restored-turns.ts";
import type { CallBegun, CallFinished } from "../../base/schema/session-log.ts";
import type { IdentifiedRequest } from "../calls/identify.ts";
import type { Exchange } from "../http/exchange.ts";
import { Call } from "../session/call.ts";
import { promptTokens } from "../session/prompt-tokens.ts";
import type { Session } from "../session/session.ts";
import { messageDelta, storageBases } from "../session/storage-base.ts";
import type { RecordedCall } from "./recording.ts";

/**
 * Under the recorded call's own id, and so with its tool calls' ids. `edited`: its answer was given by hand. Resolves when it
 * is in the log. Throws the store's errors.
 */
export async function copyCall(
  session: Session,
  exchange: Exchange,
  { request, labels, restored, fingerprint, toolsHash }: IdentifiedRequest,
  { call: recorded, tries, finished }: RecordedCall,
  recorded_ms: CallFinished["recorded_ms"],
): Promise<Call> {
  const bases = storageBases(session, restored.parent, labels.agent);
  const { delta, whole } = messageDelta(bases, recorded.messages);
  const time = Date.now();
  const begun: CallBegun = {
    ...recorded.begun,
    ...labels,
    time,
    ordinal: session.callCount,
    model: request.model,
    stream: request.stream,
    native: request.native,
    messages: delta,
    fingerprint,
    tools_hash: toolsHash,
    retry_of: null,
  };
  const call = new Call(begun, whole);
  const run = session.running.start(call);
  session.running.join(call, exchange);
  const base = session.call(delta.base_call_id);
  const prompt = finished?.prompt_ids ? promptOf(recorded) : null;
  const tokens = prompt && promptTokens(bases, { token_ids: prompt });
  const { pauses: _, ...told } = finished as CallFinished;
  const ended: CallFinished = { ...told, time, prompt_ids: tokens?.delta ?? null, replayed_from: recorded.id, recorded_ms };
  try {
    run.beginning(
      session.record(
        [withoutBase(begun, base?.begun.restored ?? []), ...tries.map((tried) => ({ ...tried, replayed: true as const })), ended],
        {
          call,
          prompt: tokens?.whole ?? null,
        },
      ),
    );
    await run.recorded;
  } finally {
    run.drop();
  }
  return call;
}

function promptOf(recorded: Call): number[] {
  return [...(recorded.tokens ?? []).slice(0, recorded.promptLength)];
}
