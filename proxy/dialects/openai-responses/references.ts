/** Items that a request names instead of sending them: output of earlier calls, which the record can say again. */
import { AlidadeError } from "../../../base/errors.ts";
import type { SessionRecord } from "../dialect.ts";
import { invalid, isObject } from "../edge.ts";
import { answerOf } from "./answer.ts";
import { callOfItem } from "./item-id.ts";

/**
 * The items with every reference replaced by what it names. Throws `not_found` naming the id, and `request_invalid` for
 * an item that is named twice: a short request would become a conversation of any length.
 */
export function followReferences(values: unknown[], record: SessionRecord | undefined): unknown[] {
  const outputs = new Map<string, unknown[]>();
  const named = new Set<unknown>();
  return values.map((value, index) => {
    if (!isObject(value) || !isReference(value)) return value;
    if (named.has(value.id)) throw invalid(`input[${index}]`, `refers to the item '${String(value.id)}' for the second time; name it once`);
    named.add(value.id);
    const callId = callOfItem(value.id);
    if (callId !== null && !outputs.has(callId)) outputs.set(callId, outputOf(record, callId));
    const item = outputs.get(callId ?? "")?.find((one) => isObject(one) && one.id === value.id);
    if (item !== undefined) return item;
    throw new AlidadeError(
      "not_found",
      `Item with id '${String(value.id)}' not found: only items that were answered here can be referred to.`,
      {
        param: `input[${index}]`,
      },
    );
  });
}

/** The type may be left out. */
function isReference(item: Record<string, unknown>): boolean {
  return item.type === "item_reference" || (item.type == null && item.role == null && typeof item.id === "string");
}

function outputOf(record: SessionRecord | undefined, callId: string): unknown[] {
  const call = record?.call(callId);
  if (call?.turn) record?.read(callId);
  const output = call?.turn ? answerOf(call.turn, call.context).output : [];
  return Array.isArray(output) ? output : [];
}
