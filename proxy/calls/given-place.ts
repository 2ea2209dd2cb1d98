/**
 * What a person's own program says of its calls, without opening sessions: to which task, group, sample and rollout they
 * belong, and labels. It stands in headers (`x-alidade-task`, `-group`, `-sample`, `-rollout`, `-label-<name>`) or in the
 * body's `metadata`, under the same names with or without `x-`, or with `_` for `-`. Calls with other ids than their
 * session's own go to a session of these ids. A sandboxed session's client is an agent: what it says here is not read.
 */

import { AlidadeError } from "../../base/errors.ts";
import { didYouMean } from "../../base/schema/complaints/nearest-word.ts";
import type { SessionSpec } from "../../base/schema/session-spec.ts";
import type { Headers } from "../dialects/index.ts";

export type GivenIds = Partial<Pick<SessionSpec, "task_id" | "group_id" | "sample_index" | "rollout_id">>;
export type GivenPlace = { ids: GivenIds; labels: Record<string, string> };

const given = /^(?:x-)?alidade-(.+)$/;
const ids = { task: "task_id", group: "group_id", rollout: "rollout_id", sample: "sample_index" } as const;
const labelName = /^label-([a-z0-9][a-z0-9_.-]{0,63})$/;
/** Long enough for any id or path. */
const maxLength = 200;
/** In front of the name of such a label among a call's labels, which harnesses fill too. */
export const givenLabel = "label-";

/** A header wins over metadata of the same name. Throws `request_invalid` for a name or value that cannot be. */
export function givenPlace({ sandboxed }: Pick<SessionSpec, "sandboxed">, headers: Headers, body?: unknown): GivenPlace {
  const place: GivenPlace = { ids: {}, labels: {} };
  if (sandboxed) return place;
  for (const [name, value] of Object.entries(metadataOf(body)))
    take(place, name.toLowerCase().replaceAll("_", "-"), value, `metadata.${name}`);
  for (const [name, value] of Object.entries(headers)) if (name.startsWith("x-alidade-")) take(place, name, value, name);
  return place;
}

function metadataOf(body: unknown): object {
  const metadata = (body as { metadata?: unknown } | null | undefined)?.metadata;
  return metadata !== null && typeof metadata === "object" ? metadata : {};
}

function take(place: GivenPlace, name: string, value: unknown, param: string): void {
  const [, word] = given.exec(name) ?? [];
  if (word === undefined) return;
  if (typeof value !== "string" && typeof value !== "number") throw refused(param, value, "give a text or a number");
  const text = String(value);
  if (text === "" || text.length > maxLength) throw refused(param, value, `give 1 to ${maxLength} characters`);
  const [, label] = labelName.exec(word) ?? [];
  if (label !== undefined) place.labels[label] = text;
  else if (!Object.hasOwn(ids, word))
    throw refused(param, value, `there are task, group, sample, rollout and label-<name>${didYouMean(word, Object.keys(ids))}`);
  else if (word === "sample") place.ids.sample_index = sampleOf(param, text);
  else place.ids[ids[word as "task" | "group" | "rollout"]] = text;
}

function sampleOf(param: string, text: string): number {
  const index = Number(text);
  if (Number.isSafeInteger(index) && /^\d+$/.test(text)) return index;
  throw refused(param, text, "give a whole number from 0");
}

function refused(param: string, value: unknown, why: string): AlidadeError {
  return new AlidadeError("request_invalid", `${param} is ${(JSON.stringify(value) ?? "nothing").slice(0, maxLength)}: ${why}`, { param });
}
