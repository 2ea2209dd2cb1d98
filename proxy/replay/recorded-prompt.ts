/** The prompt of a call that is sampled beside a recorded one: the recorded ids, at an engine for which they say the same. */
import { AlidadeError } from "../../base/errors.ts";
import { imagesIn } from "../../base/media/stored-picture.ts";
import type { EngineFingerprints } from "../../base/schema/session-log.ts";
import { IdText } from "../../base/tokens/id-text.ts";
import { foldImages } from "../../base/tokens/image-spans.ts";
import type { EngineFacts } from "../../engines/index.ts";
import type { Continued } from "../continuity/continued.ts";
import type { RecordedCall } from "./recording.ts";
import type { Replay } from "./replay.ts";

/** null: the prompt is made as any other is. Throws `request_invalid` where the engine cannot hold it. */
export function recordedPrompt(replay: Replay, recorded: RecordedCall, facts: EngineFacts): Continued | null {
  if (replay.isRendered || hasNoPrompt(recorded)) return null;
  const why = whyNoRecordedPrompt(recorded, facts);
  if (why !== null) throw new AlidadeError("request_invalid", `the recorded prompt cannot be sampled on: ${why}`);
  const { call } = recorded;
  const ids = [...(call.tokens ?? [])].slice(0, call.promptLength);
  const media = call.outcome?.media ?? [];
  return {
    // Ids are given with one pad for each picture: the engine would expand the record's pads once more.
    prompt_ids: IdText.of(foldImages(ids, media)),
    media,
    record: { mode: "recorded", from_session_id: replay.sourceId, from_call_id: call.id, kept: ids.length },
  };
}

/** A sub-agent's call that failed or never ended, beside the turn that is forked: no engine told the ids of its prompt. */
function hasNoPrompt({ call }: RecordedCall): boolean {
  return call.turn === null && call.idText === null;
}

/** null where the engine can sample on this call's very prompt. */
export function whyNoRecordedPrompt({ call }: RecordedCall, facts: EngineFacts): string | null {
  const { token_in, token_in_missing, fingerprints, images, images_missing } = facts;
  if (call.idText === null || call.promptLength === 0) return "the record has no token ids of it";
  if (!token_in) return `the engine takes no prompt as token ids${token_in_missing ? ` (${token_in_missing})` : ""}`;
  if (!isSame(call.fingerprints, fingerprints ?? null)) return "the engine has another template or tokenizer than the one that is recorded";
  const shown = imagesIn(call.messages).length;
  if (shown === 0) return null;
  if (call.outcome?.media?.length !== shown) return "the record does not say where its pictures stand";
  return images?.token_in ? null : `the engine takes no pictures beside token ids${images_missing ? ` (${images_missing})` : ""}`;
}

/** False if one of them is unknown. */
function isSame(a: EngineFingerprints | null, b: EngineFingerprints | null): boolean {
  return a?.template != null && a.tokenizer != null && a.template === b?.template && a.tokenizer === b.tokenizer;
}
