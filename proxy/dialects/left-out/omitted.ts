/**
 * What of a request the model does not get, by name: tools that run at a vendor, and fields that ask something of the model
 * or its context and have no counterpart at an engine. The names are on the record of the call, and every report counts
 * them. History is never among them: it is translated or refused.
 */
import type { NeutralRequest } from "../../../base/schema/message.ts";
import { isObject } from "../edge.ts";
import { refusedKeys } from "../engine-sampling.ts";

/** A request has a handful of them. A hostile one has as many fields as fit into its body, and names of any length. */
const mostNames = 32;
const longestName = 80;

/** `tools`: their types. `fields`: paths in the body. */
export function omitted({
  tools = [],
  fields = [],
}: {
  tools?: readonly string[];
  fields?: readonly string[];
}): Pick<NeutralRequest, "omitted"> {
  const names = [...tools.map((type) => `tool ${type}`), ...fields.map((path) => `field ${path}`)];
  const all = [...new Set(names.map((name) => name.slice(0, longestName)))];
  const kept = all.length > mostNames ? [...all.slice(0, mostNames), `${all.length - mostNames} more`] : all;
  return kept.length === 0 ? {} : { omitted: kept };
}

/** Fields that say who asks, what is kept and how the answer is sent or billed, under the names of several APIs. */
const aside = [
  ...["metadata", "user", "store", "service_tier", "safety_identifier", "prompt_cache_key", "prompt_cache_retention"],
  ...["client_metadata", "stream_options", "session_id", "request_id", "priority", "usage", "timeout"],
  // vLLM's and SGLang's own: what an answer shows beside its text.
  ...["cache_salt", "return_token_ids", "return_tokens_as_token_ids", "include_reasoning", "separate_reasoning", "stream_reasoning"],
];

/** The keys of a body that leave nothing out: those that its dialect reads, and those that say nothing to a model. */
export function knownFields(read: readonly string[]): ReadonlySet<string> {
  return new Set([...read, ...aside, ...refusedKeys]);
}

/** Paths of the fields that are not known and ask for something. `at`: the path of the object in the body. */
export function unknownFields(object: unknown, known: ReadonlySet<string>, at = ""): string[] {
  if (!isObject(object)) return [];
  return Object.entries(object).flatMap(([key, value]) =>
    known.has(key) || asksNothing(key, value) ? [] : [at === "" ? key : `${at}.${key}`],
  );
}

/** What an API does also where the field is left out. */
const defaults = new Map<string, unknown>([
  ["truncation", "disabled"],
  ["verbosity", "medium"],
]);

function asksNothing(key: string, value: unknown): boolean {
  if (value === null || value === undefined || value === false || value === "") return true;
  if (Array.isArray(value)) return value.length === 0;
  // `context_management: {edits: []}` asks for as little as an empty object.
  if (isObject(value)) return Object.values(value).every((inner) => asksNothing("", inner));
  return defaults.get(key) === value;
}
