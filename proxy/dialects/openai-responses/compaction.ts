/**
 * `/responses/compact`: the model summarises a conversation, and the client continues from one opaque item that replaces
 * it. The model sees a normal turn with a plain request at its end. The item names the call that sampled the summary, so
 * the summary is read from the record when the item comes back.
 */
import { type Message, type Turn, textOf } from "../../../base/schema/message.ts";
import { answerable } from "../answerable.ts";
import { carrierOf, fromCarrier } from "../carrier.ts";
import type { AnswerContext, SessionRecord } from "../dialect.ts";
import { invalid, isObject } from "../edge.ts";
import { itemId } from "./item-id.ts";
import { usageOf } from "./response-object.ts";
import { responseId } from "./stored-id.ts";
import { toItems } from "./to-items.ts";

/** What the route says of a body, and it alone: it takes the place of a field of that name, and joins the record. */
export const asCompaction = { compaction: true } as const;
export const asNoCompaction = { compaction: false } as const;

export function isCompaction(fields: Record<string, unknown>): boolean {
  return fields.compaction === true;
}

/** The request to the model, behind the whole conversation. */
export const compactionPrompt: Message = {
  role: "user",
  parts: [
    {
      type: "text",
      text: [
        "The conversation is about to be cut off here, and the work will go on from your summary alone. Write that summary now.",
        "Say what the task is and what it demands, what was done and decided so far and why, what was found out (names of files, commands, results and errors, as they were), what is still open, and what the next step is.",
        "Do not go on with the work, call no tools, and answer with the summary only.",
      ].join("\n"),
    },
  ],
};

/** The user's own messages as they were, and one item for everything else. */
export function compactedResponse(turn: Turn, context: AnswerContext): Record<string, unknown> {
  answerable(turn.finish_reason);
  const userMessages = (context.messages ?? []).slice(0, -1).filter((message) => message.role === "user");
  const compaction = { id: itemId("cmp", context.call_id, 0), type: "compaction", encrypted_content: carrierOf(context.call_id) };
  return {
    id: responseId(context.call_id),
    object: "response.compaction",
    created_at: context.created,
    output: [...toItems(userMessages, context), compaction],
    usage: usageOf(turn.usage),
  };
}

type Unfolded = { values: unknown[]; compacted_in: string | null };

/**
 * The items with every compaction replaced by what it says, and the call that made the last one. Throws
 * `request_invalid` for one that was not made here, and for one that comes twice.
 */
export function unfoldCompactions(items: unknown[], record: SessionRecord | undefined): Unfolded {
  let compacted_in: string | null = null;
  const unfolded = new Set<string>();
  const values = items.map((value, index) => {
    if (!isObject(value)) return value;
    if (value.type === "compaction_trigger") throw invalid(`input[${index}]`, "is not supported; ask POST /v1/responses/compact instead");
    if (value.type !== "compaction" && value.type !== "compaction_summary") return value;
    const carrier = value.encrypted_content;
    const callId = fromCarrier(typeof carrier === "string" ? carrier : "") ?? "";
    const turn = record?.call(callId)?.turn;
    if (!turn)
      throw invalid(
        `input[${index}].encrypted_content`,
        "was not made here, and what it says cannot be read: send the conversation itself",
      );
    if (unfolded.has(callId)) throw invalid(`input[${index}]`, "is the same compaction for the second time; send it once");
    unfolded.add(callId);
    record?.read(callId);
    compacted_in = callId;
    return { type: "message", role: "user", content: `Summary of the conversation up to here:\n\n${textOf(turn.message)}` };
  });
  return { values, compacted_in };
}
