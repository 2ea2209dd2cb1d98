/** A new call: written down before anything is asked of an engine. */
import { newId } from "../../base/schema/ids.ts";
import type { Message } from "../../base/schema/message.ts";
import { withoutBase } from "../../base/schema/restored-turns.ts";
import type { CallBegun } from "../../base/schema/session-log.ts";
import type { Exchange } from "../http/exchange.ts";
import { Call } from "../session/call.ts";
import type { CallRun } from "../session/call-run.ts";
import type { Delta } from "../session/prompt-tokens.ts";
import type { Session } from "../session/session.ts";
import { messageDelta, storageBases } from "../session/storage-base.ts";
import type { AdmittedCall } from "./admit.ts";
import type { IdentifiedRequest } from "./identify.ts";

/** `bases`: earlier calls with whose tokens its prompt may begin. `run.recorded` says when it is in the log. */
export function begin(
  session: Session,
  exchange: Exchange,
  identified: IdentifiedRequest,
  admitted: AdmittedCall,
): { run: CallRun; bases: Call[] } {
  const bases = storageBases(session, identified.restored.parent, identified.labels.agent);
  const { delta, whole } = messageDelta(bases, identified.restored.messages);
  const call = new Call(entryOf(session, exchange, identified, admitted, delta), whole);
  const run = session.running.start(call);
  session.running.join(call, exchange);
  const base = session.call(delta.base_call_id);
  run.beginning(session.record(withoutBase(call.begun, base?.begun.restored ?? []), { call }));
  return { run, bases };
}

function entryOf(
  session: Session,
  exchange: Exchange,
  { request, labels, restored, passed, toolsHash, fingerprint }: IdentifiedRequest,
  { retryOf, slot, sampling }: AdmittedCall,
  messages: Delta<Message>,
): CallBegun {
  return {
    type: "call_begun",
    time: Date.now(),
    call_id: newId("call"),
    ordinal: session.callCount,
    dialect: exchange.dialect.name,
    ...labels,
    model: request.model,
    stream: request.stream,
    messages,
    ...(request.prompt && { prompt: request.prompt }),
    fingerprint,
    restored: restored.restored,
    parent_call_id: restored.parent?.id ?? request.compacted_in ?? null,
    retry_of: retryOf?.id ?? null,
    tools_hash: toolsHash,
    tool_choice: passed.tool_choice,
    ...(passed.withheld && { withheld: passed.withheld }),
    ...(request.omitted && { omitted: request.omitted }),
    requested_sampling: request.sampling,
    effective_sampling: sampling,
    policy: slot.policy,
    role_mapping: slot.facts.role_mapping,
    native: request.native,
  };
}
