/** Tool-call ids of ours, as harnesses leave them. */
import { fromToolCallId } from "../../base/schema/ids.ts";

const embedded = /(call[0-9a-z]{20}t\d{1,4})(?!\d)/;

/** The call and index that an id names: ours as it is, or inside one that a harness made of it (a prefix, two ids in one). */
export function ownId(id: string): { call_id: string; index: number } | null {
  return fromToolCallId(id) ?? idInText(id);
}

/** The first id of ours that stands in a text: some harnesses keep tool calls as text only. */
export function idInText(text: string): { call_id: string; index: number } | null {
  return fromToolCallId(embedded.exec(text)?.[1] ?? "");
}
