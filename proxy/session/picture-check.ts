/**
 * Tells whether the model sees what its tools show. Some harnesses drop the pictures of tools, hand them on a turn late or scale
 * them, all without an error: what such an agent does measures nothing.
 *
 * The first request with the result of a call that answered with a picture must show a picture that the relay passed. Only
 * calls that the model asked for count, and any passed picture will do: an agent that asks the relay by itself cannot make
 * its harness look blind, and so void a rollout.
 */
import { hash } from "node:crypto";
import { AlidadeError } from "../../base/errors.ts";
import { readPicture } from "../../base/media/read-picture.ts";
import { imagesIn, isStored } from "../../base/media/stored-picture.ts";
import { mintToolCallId } from "../../base/schema/ids.ts";
import type { ImagePart, Message } from "../../base/schema/message.ts";
import { ownId } from "../restore/own-id.ts";

/** Until the first of them is looked for. An agent may ask for pictures in a loop. */
const mostPassed = 1_000;

type PassedPicture = { tool: string; size: string };

export class PictureCheck {
  readonly #blind = new AbortController();
  /** By the SHA-256 of its bytes. */
  readonly #passed = new Map<string, PassedPicture>();
  /** Tool calls that answered with a picture: id -> its hash. */
  readonly #awaited = new Map<string, string>();
  /** Tool calls whose results have been in a request. A harness that gave up waiting does not show what came later. */
  readonly #answered = new Set<string>();
  #isSure = false;

  /** Fires when the model was shown nothing of what its tool showed; its reason is `harness_blind`. */
  get blind(): AbortSignal {
    return this.#blind.signal;
  }

  /** `toolCallId`: of the model's call that asked for it; null: it did not. Pictures are base64, as they were passed. */
  passed(tool: string, pictures: readonly string[], toolCallId: string | null): void {
    if (this.#isSure || this.#passed.size >= mostPassed) return;
    for (const base64 of pictures) {
      const bytes = Buffer.from(base64, "base64");
      const sha256 = hash("sha256", bytes);
      this.#passed.set(sha256, { tool, size: sizeOf(readPicture(bytes)) });
      if (toolCallId !== null && !this.#answered.has(toolCallId)) this.#awaited.set(toolCallId, sha256);
    }
  }

  /** Looks at a request before it is answered. `sent`: with the ids that the harness sent. Throws `harness_blind`. */
  look(sent: readonly Message[], messages: readonly Message[]): void {
    if (this.#isSure) return;
    const results = resultsOf(sent);
    const asked = results.find((id) => this.#awaited.has(id));
    for (const id of results) this.#answered.add(id);
    if (asked === undefined) return;
    const shown = imagesIn(messages);
    this.#isSure = true;
    if (shown.some((part) => this.#passed.has(hashOf(part) ?? ""))) return;
    const error = new AlidadeError("harness_blind", this.#words(this.#awaited.get(asked) ?? "", shown));
    this.#blind.abort(error);
    throw error;
  }

  #words(sha256: string, shown: readonly ImagePart[]): string {
    const { tool = "the tool", size = "" } = this.#passed.get(sha256) ?? {};
    const last = shown.at(-1);
    const instead = last === undefined ? "no picture" : `another one${isStored(last) ? sizeOf(last) : ""} in its place`;
    return `the model does not see what its tools show: ${tool} answered with a picture${size} (SHA-256 ${sha256.slice(0, 12)}…), and the request with its result shows ${instead}`;
  }
}

/** Ids of ours, whatever the harness made of them. */
function resultsOf(messages: readonly Message[]): string[] {
  const ids = messages.flatMap(({ parts }) => parts.flatMap((part) => (part.type === "tool_result" ? [ownId(part.call_id)] : [])));
  return ids.flatMap((own) => (own === null ? [] : [mintToolCallId(own.call_id, own.index)]));
}

/** null: an address, whose bytes are not in the request. */
function hashOf(part: ImagePart): string | null {
  if (isStored(part)) return part.sha256;
  const base64 = /^data:[^,]{0,200};base64,/.exec(part.url.slice(0, 300))?.[0];
  return base64 === undefined ? null : hash("sha256", Buffer.from(part.url.slice(base64.length), "base64"));
}

function sizeOf(facts: { width: number; height: number } | null): string {
  return facts === null ? "" : ` of ${facts.width}x${facts.height}`;
}
