/** A session's tables from its log: what a crashed process knew, and nothing that it had not written down. */
import { AlidadeError } from "../errors.ts";
import { withBase } from "../schema/restored-turns.ts";
import type { Answered, LogEntry } from "../schema/session-log.ts";
import type { Store } from "../store/index.ts";
import { IdText } from "../tokens/id-text.ts";
import { Call } from "./call.ts";
import { moveToFront } from "./engine-pool.ts";
import { LazyLog } from "./lazy-log.ts";
import type { Delta } from "./prompt-tokens.ts";
import { Session } from "./session.ts";

/**
 * A session of the store as it was. Finished without answered counts as undelivered; begun without finished as failed.
 * Of a sealed one only what a late reward needs is kept. Null where a killed process had not even written that it was
 * opened; throws `store_error` where the log is damaged.
 */
export async function rebuildSession(store: Store, sessionId: string): Promise<Session | null> {
  const entries = await store.read(sessionId);
  const opened = entries[0];
  if (opened === undefined) return null;
  if (opened.type !== "opened") throw new AlidadeError("store_error", `session ${sessionId}: its log does not begin with \`opened\``);
  const log = new LazyLog(store, sessionId);
  const session = new Session({ id: sessionId, keyHash: opened.key_hash, spec: opened.spec, log, started: opened.time });
  for (const entry of entries) replay(session, entry);
  if (session.sealed !== null) await session.release();
  return session;
}

function replay(session: Session, entry: LogEntry): void {
  if (entry.type === "tools") session.tools.set(entry.tools_hash, entry.tools);
  else if (entry.type === "call_begun")
    session.add(
      new Call(
        withBase(entry, session.calls.get(entry.messages.base_call_id ?? "")?.begun.restored ?? []),
        unfold(session, entry.messages, (call) => call.conversation),
      ),
    );
  else if (entry.type === "call_finished") {
    const call = session.calls.get(entry.call_id);
    call?.finish(entry, entry.prompt_ids && unfoldIds(session, entry.prompt_ids));
    if (call) session.learn(call);
    call?.pauses.push(...(entry.pauses ?? []));
  } else if (entry.type === "tried") {
    if (entry.engine_name !== null) session.engineNames = moveToFront(session.engineNames, entry.engine_name);
    const call = session.calls.get(entry.call_id);
    if (call) call.fingerprints = entry.fingerprints;
    if (session.spec.policy_mode === "pin") session.pinned ??= entry.policy ?? null;
  } else if (entry.type === "answered" || entry.type === "replayed") {
    const call = session.calls.get(entry.call_id);
    if (call) session.noteDelivery(call, entry.delivery);
    if (call && entry.delivery === "complete") session.told(call.begun.request_class, null);
    else if (call && entry.type === "answered" && wasError(entry))
      session.told(call.begun.request_class, call.finished?.error ?? null, { call });
  } else if (entry.type === "refused") session.told(entry.request_class ?? "unknown", entry.error);
  else if (entry.type === "conversation") session.conversations.set(entry.conversation_id, entry);
  else if (entry.type === "forgotten") session.forgotten.add(entry.id);
  else if (entry.type === "sealed") session.sealed = entry.reason;
  else if (entry.type === "rewarded") session.revision = Math.max(session.revision, entry.revision);
}

/** Of one whose client left before it was told the status says it. */
function wasError({ delivery, status }: Answered): boolean {
  return delivery === "error" || status !== 200;
}

function unfold<T>(session: Session, delta: Delta<T>, listOf: (call: Call) => readonly T[]): T[] {
  if (delta.base_call_id === null) return delta.new;
  return [...listOf(baseOf(session, delta.base_call_id)).slice(0, delta.base_len), ...delta.new];
}

function unfoldIds(session: Session, delta: Delta<number>): IdText {
  const base = delta.base_call_id === null ? null : baseOf(session, delta.base_call_id).idText;
  return base ? base.extend(base.head(delta.base_len), delta.new) : IdText.of(delta.new);
}

function baseOf(session: Session, callId: string): Call {
  const base = session.calls.get(callId);
  if (!base) throw new AlidadeError("store_error", `session ${session.id}: the log names call ${callId} before it was begun`);
  return base;
}
