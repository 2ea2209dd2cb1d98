/** A session's tables from its log: what a crashed process knew, and nothing that it had not written down. */
import { AlidadeError } from "../../errors.ts";
import type { Message } from "../../schema/message.ts";
import { withBase } from "../../schema/restored-turns.ts";
import type { Answered, LogLine } from "../../schema/session-log.ts";
import type { Store } from "../../store/index.ts";
import { IdText } from "../../tokens/id-text.ts";
import { Call } from "../calls/call.ts";
import { moveToFront, noteOwn } from "../pool/engine-pool.ts";
import { LazyLog } from "./lazy-log.ts";
import type { Delta } from "./prompt-tokens.ts";
import { Session } from "./session.ts";

/**
 * Rebuilds a session from its log. A call that finished without `answered` counts as undelivered; one that began without
 * finishing counts as failed. A damaged line loses its call and the calls that are stored relative to it, as in
 * reconstruct/log/damage.ts. A sealed session keeps only what a late reward needs. Null where a killed process had not
 * written the `opened` line; throws `store_error` where that line is damaged.
 */
export async function rebuildSession(store: Store, sessionId: string): Promise<Session | null> {
  const entries = await store.read(sessionId);
  const opened = entries[0];
  if (opened === undefined) return null;
  if (opened.type !== "opened") throw new AlidadeError("store_error", `session ${sessionId}: ${whyNotOpened(opened)}`);
  const log = new LazyLog(store, sessionId);
  const session = new Session({ id: sessionId, keyHash: opened.key_hash, spec: opened.spec, log, started: opened.time });
  for (const entry of entries) replay(session, entry);
  if (session.sealed !== null) await session.release();
  return session;
}

function whyNotOpened(line: LogLine): string {
  return line.type === "damaged" ? line.reason : "its log does not begin with `opened`";
}

function replay(session: Session, entry: LogLine): void {
  if (entry.type === "tools") session.tools.set(entry.tools_hash, entry.tools);
  else if (entry.type === "call_begun") {
    const messages = unfold(session, entry.messages);
    const base = session.calls.get(entry.messages.base_call_id ?? "");
    if (messages) session.add(new Call(withBase(entry, base?.begun.restored ?? []), messages));
  } else if (entry.type === "call_finished") {
    const call = session.calls.get(entry.call_id);
    const prompt = entry.prompt_ids && unfoldIds(session, entry.prompt_ids);
    call?.finish(prompt ? entry : { ...entry, prompt_ids: null }, prompt);
    if (call) session.learn(call);
    call?.pauses.push(...(entry.pauses ?? []));
  } else if (entry.type === "damaged") session.noteDamage(entry);
  else if (entry.type === "tried") {
    if (entry.engine_name !== null) session.engineNames = moveToFront(session.engineNames, entry.engine_name);
    const call = session.calls.get(entry.call_id);
    if (call) call.fingerprints = entry.fingerprints;
    if (call && !entry.other_policy) noteOwn(session, { ...call.begun, engine: entry.engine_name ?? "", policy: entry.policy ?? null });
  } else if (entry.type === "answered" || entry.type === "replayed") {
    const call = session.calls.get(entry.call_id);
    if (call) session.noteDelivery(call, entry.delivery);
    if (call && entry.delivery === "complete") session.noteOutcome(call.begun.request_class, null);
    else if (call && entry.type === "answered" && wasError(entry))
      session.noteOutcome(call.begun.request_class, call.finished?.error ?? null, { call });
  } else if (entry.type === "refused") session.noteOutcome(entry.request_class ?? "unknown", entry.error);
  else if (entry.type === "conversation") session.conversations.set(entry.conversation_id, entry);
  else if (entry.type === "deleted") session.deleted.add(entry.id);
  else if (entry.type === "sealed") session.sealed = entry.reason;
  else if (entry.type === "rewarded") session.revision = Math.max(session.revision, entry.revision);
}

/** Where the client left before the error, the status shows it. */
function wasError({ delivery, status }: Answered): boolean {
  return delivery === "error" || status !== 200;
}

/** Null where it goes on from what the log does not hold. */
function unfold(session: Session, { base_call_id, base_len, new: fresh }: Delta<Message>): Message[] | null {
  if (base_call_id === null) return fresh;
  const base = session.calls.get(base_call_id)?.conversation ?? [];
  return base.length < base_len ? null : [...base.slice(0, base_len), ...fresh];
}

/** Null where they go on from ids that the log does not hold. */
function unfoldIds(session: Session, { base_call_id, base_len, new: fresh }: Delta<number>): IdText | null {
  if (base_call_id === null || base_len === 0) return IdText.of(fresh);
  const base = session.calls.get(base_call_id)?.idText;
  return !base || base.length < base_len ? null : base.extend(base.head(base_len), fresh);
}
