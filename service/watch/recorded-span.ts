/** A span as data, and the ids by which spans of several processes find each other. */
import { hash } from "node:crypto";
import { hideSecrets } from "../../base/wire/secrets.ts";

export type SpanAttributes = Record<string, string | number | boolean | string[]>;

export type SpanPlace = { trace: string; span: string };

export type RecordedSpan = {
  name: string;
  place: SpanPlace;
  /** The span around it, of the same trace; null: it is the first. */
  parent: string | null;
  /** A span of another trace that it belongs to. */
  link?: SpanPlace;
  /** It waits for another server. */
  isClient?: boolean;
  /** Unix milliseconds. */
  start: number;
  end: number;
  attributes: SpanAttributes;
  /** The code of what ended it; null: nothing failed. */
  error: string | null;
};

/**
 * An id that follows from what it names: each process makes the same one from what it knows, so nothing has to be handed from
 * process to process. 32 hexadecimal digits of a trace, 16 of a span.
 */
export function traceId(...names: (string | number)[]): string {
  return hash("sha256", JSON.stringify(["trace", ...names])).slice(0, 32);
}

export function spanId(...names: (string | number)[]): string {
  return hash("sha256", JSON.stringify(["span", ...names])).slice(0, 16);
}

/** Names of models, tasks and harnesses may be a stranger's: longer ones are cut. */
const longestText = 256;

/** Without what is unknown; texts are cut and hold no secret. */
export function attributesOf(values: Record<string, string | number | boolean | null | undefined | string[]>): SpanAttributes {
  const known = Object.entries(values).filter((entry): entry is [string, SpanAttributes[string]] => entry[1] != null);
  return Object.fromEntries(known.map(([name, value]) => [name, boundedValue(value)]));
}

function boundedValue(value: SpanAttributes[string]): SpanAttributes[string] {
  if (Array.isArray(value)) return value.slice(0, 16).map(boundedText);
  return typeof value === "string" ? boundedText(value) : value;
}

/** Cut before it is searched for secrets, for a stranger's text may be megabytes. */
export function boundedText(text: string): string {
  return hideSecrets(text.slice(0, longestText)).toWellFormed();
}
