/**
 * Decodes the first difference between a call's prompt and its parent's tokens with the engine's own tokenizer and logs
 * both sides. Reconstruction can then tell, offline, equal text in other tokens from other text.
 */

import type { EngineSlot } from "../pool/engine-slot.ts";
import type { Call } from "../session/call.ts";
import type { Session } from "../session/session.ts";

/** A character can be cut over several tokens; decoding begins this many before the difference. UTF-8 has at most 4 bytes. */
const backUp = 4;
/** Longer tails are compared up to here; beyond, the class stays unknown rather than costing seconds of tokenizer. */
const maxDecodedTokens = 65_536;
/** What a person is shown of either side. */
const shownCharacters = 400;
/** An engine's tokenizer answers in milliseconds; this only bounds one that hangs. */
const timeoutMs = 30_000;

export async function decodeDifference(session: Session, { engine }: EngineSlot, call: Call): Promise<void> {
  const parent = session.call(call.begun.parent_call_id);
  if (!engine.detokenize || !parent?.idText || !call.idText || !call.outcome) return;
  // Ids of another tokenizer say other words: what this engine would make of them means nothing.
  if (parent.fingerprints?.tokenizer !== call.fingerprints?.tokenizer) return;
  if (call.goesOnFrom(parent)) return;
  const shared = call.idText.commonHead(parent.idText.bytes).ids;
  if (shared === parent.idText.length) return;
  const before = parent.idText.toIds();
  const prompt = call.idText.toIds().slice(0, call.promptLength);
  const position = Math.min(shared, prompt.length);
  const at = Math.max(0, position - backUp);
  if (before.length - at > maxDecodedTokens || prompt.length === 0) return;
  const model = call.outcome.engine_model ?? call.begun.model;
  const signal = AbortSignal.timeout(timeoutMs);
  const [parentText, childText] = await Promise.all([
    engine.detokenize(model, before.slice(at), signal),
    at < prompt.length ? engine.detokenize(model, prompt.slice(at, at + maxDecodedTokens), signal) : "",
  ]);
  await session.record({
    type: "decoded",
    time: Date.now(),
    call_id: call.id,
    parent_call_id: parent.id,
    position,
    at,
    parent_text: parentText.slice(0, shownCharacters),
    child_text: childText.slice(0, shownCharacters),
    same_text: childText.startsWith(parentText),
  });
}
