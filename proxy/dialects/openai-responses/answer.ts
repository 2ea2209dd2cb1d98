/** The whole response for a turn. */
import { mintToolCallId } from "../../../base/schema/ids.ts";
import type { Turn } from "../../../base/schema/message.ts";
import { type AnswerContext, toEvents } from "../dialect.ts";
import { compactedResponse, isCompaction } from "./compaction.ts";
import { ResponsesWriter } from "./writer.ts";

export function answerOf(turn: Turn, context: AnswerContext): Record<string, unknown> {
  if (isCompaction(context.native)) return compactedResponse(turn, context);
  const writer = new ResponsesWriter(context);
  for (const event of toEvents(turn, (index) => mintToolCallId(context.call_id, index))) writer.event(event);
  return writer.body();
}
