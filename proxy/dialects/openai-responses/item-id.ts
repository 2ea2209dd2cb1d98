/**
 * Ids of output items. They name the call, so that items which a stateless client sends back are known to be one turn.
 */
export type ItemKind = "msg" | "rs" | "fc" | "ctc" | "lsh" | "sh" | "apc" | "cu" | "cmp";

export function itemId(kind: ItemKind, callId: string, outputIndex: number): string {
  return `${kind}_${callId}i${outputIndex}`;
}

/** The call that an item was sampled in, or null when the id is not ours. */
export function callOfItem(id: unknown): string | null {
  return typeof id === "string" ? (/^(?:msg|rs|fc|ctc|lsh|sh|apc|cu)_(call[0-9a-z]{20})i\d{1,6}$/.exec(id)?.[1] ?? null) : null;
}
