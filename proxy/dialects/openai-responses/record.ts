/** Answers about answers: responses given again, listed, deleted; conversations opened. All from the session's record. */
import { z } from "zod";
import { AlidadeError } from "../../../base/errors.ts";
import type { RecordRequest, Route, SessionRecord, StoredCall, StoredConversation } from "../dialect.ts";
import { checked, invalid, JsonObject } from "../edge.ts";
import { answerOf } from "./answer.ts";
import { instructionsOf } from "./earlier.ts";
import { parseItems } from "./items.ts";
import { failure, responseObject } from "./response-object.ts";
import { callOfResponse, conversationId, conversationOf } from "./stored-id.ts";
import { toItems } from "./to-items.ts";
import { ToolList } from "./tools.ts";

type Body = Record<string, unknown>;
type RecordAnswer = (request: RecordRequest, record: SessionRecord) => Promise<Body> | Body;

const answers = new Map<string, RecordAnswer>(
  Object.entries({
    "GET /v1/responses/:id": ({ id, query }, record) => {
      if (query.stream === "true") throw invalid("stream", "a response that was given is answered in one piece; leave it out");
      const call = storedCall(id, record);
      if (call.turn) record.read(call.context.call_id);
      return responseOf(call);
    },
    "DELETE /v1/responses/:id": async ({ id }, record) => {
      await record.delete(storedCall(id, record).context.call_id);
      return { id, object: "response", deleted: true };
    },
    "POST /v1/responses/:id/cancel": ({ id }, record) => {
      storedCall(id, record);
      throw new AlidadeError("request_invalid", "Cannot cancel a synchronous response.");
    },
    "GET /v1/responses/:id/input_items": ({ id, query }, record) => {
      const call = storedCall(id, record);
      return page(toItems(call.messages.slice(instructionsOf(call)), call.context), query);
    },
    "POST /v1/conversations": async ({ body }, record) => {
      const { items, metadata } = checked(NewConversation, body ?? {});
      const messages = parseItems(items ?? [], new ToolList(), record);
      return conversationBody(await record.openConversation(messages, metadata ?? {}));
    },
    "GET /v1/conversations/:id": ({ id }, record) => conversationBody(storedConversation(id, record)),
    "GET /v1/conversations/:id/items": ({ id, query }, record) => {
      const { items, answer } = conversationItems(storedConversation(id, record), record);
      const shown = page(items, query);
      if (answer && shown.data.some((item) => items.indexOf(item) >= answer.first)) record.read(answer.call_id);
      return shown;
    },
    "DELETE /v1/conversations/:id": async ({ id }, record) => {
      await record.delete(storedConversation(id, record).conversation_id);
      return { id, object: "conversation.deleted", deleted: true };
    },
  } satisfies Record<string, RecordAnswer>),
);

const NewConversation = z.looseObject({ items: z.array(z.unknown()).nullish(), metadata: JsonObject.nullish() });

export const recordRoutes: Route[] = [...answers.keys()].map((key) => {
  const [method, path] = key.split(" ") as [Route["method"], string];
  return { method, path, kind: "record" };
});

export async function answerFromRecord(request: RecordRequest, record: SessionRecord): Promise<Body> {
  const answer = answers.get(`${request.method} ${request.path}`);
  if (!answer) throw new AlidadeError("not_found", `${request.method} ${request.path} is no route`);
  return answer(request, record);
}

function storedCall(id: string, record: SessionRecord): StoredCall {
  const call = record.call(callOfResponse(id) ?? "");
  if (call) return call;
  throw new AlidadeError("not_found", `Response with id '${id}' not found.`, { param: "response_id" });
}

function storedConversation(id: string, record: SessionRecord): StoredConversation {
  const found = record.conversation(conversationOf(id));
  if (found) return found;
  throw new AlidadeError("not_found", `Conversation with id '${id}' not found.`, { param: "conversation_id" });
}

/** The very body that was the answer, or how it stands with it. */
function responseOf({ turn, context, error }: StoredCall): Body {
  if (turn) return answerOf(turn, context);
  return responseObject(context, { output: [], ...(error ? { status: "failed", error: failure(error) } : { status: "in_progress" }) });
}

function conversationBody({ conversation_id, created, metadata }: StoredConversation): Body {
  return { id: conversationId(conversation_id), object: "conversation", created_at: created, metadata };
}

type ShownItem = ReturnType<typeof toItems>[number];

/** `answer`: the call that sampled the last items, from item `first` on. */
function conversationItems(
  conversation: StoredConversation,
  record: SessionRecord,
): { items: ShownItem[]; answer: { call_id: string; first: number } | null } {
  const latest = conversation.latest_call_id === null ? null : record.call(conversation.latest_call_id);
  if (!latest?.turn) {
    const context = { call_id: conversation.conversation_id, created: 0, model: "", native: {}, custom_tools: new Set<string>() };
    return { items: toItems(conversation.messages, context), answer: null };
  }
  const { context, turn } = latest;
  const items = toItems([...latest.messages.slice(instructionsOf(latest)), turn.message], context);
  const first = items.length - toItems([turn.message], context).length;
  return { items, answer: { call_id: context.call_id, first } };
}

/** Newest first and 20 per page by default, as in the vendor's API. */
function page(items: readonly ShownItem[], query: Record<string, string>): Body & { data: ShownItem[] } {
  const ordered = query.order === "asc" ? items : items.toReversed();
  const after = query.after === undefined ? -1 : ordered.findIndex((item) => item.id === query.after);
  if (query.after !== undefined && after === -1) throw invalid("after", `no item is named "${query.after}"`);
  const limit = checked(z.coerce.number().int().min(1).max(100), query.limit ?? 20, "limit");
  const data = ordered.slice(after + 1, after + 1 + limit);
  return {
    object: "list",
    data,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: after + 1 + limit < ordered.length,
  };
}
