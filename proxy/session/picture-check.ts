/**
 * Checks that the model sees the pictures of its tools. Some harnesses drop these pictures, pass them on a turn late or scale
 * them, all without an error. Such a rollout measures nothing.
 *
 * If a tool answers a call with a picture, the first request with the result must show a picture that the relay passed. Only
 * calls of the model in turns without other tools count, and any passed picture is enough. So an agent that calls the relay by
 * itself cannot make its harness look blind, and cannot void its rollout that way.
 */
import { hash } from "node:crypto";
import { AlidadeError } from "../../base/errors.ts";
import { readPicture } from "../../base/media/read-picture.ts";
import { imagesIn, isStored } from "../../base/media/stored-picture.ts";
import { mintToolCallId } from "../../base/schema/ids.ts";
import type { ImagePart, Message } from "../../base/schema/message.ts";
import { ownId } from "../restore/own-id.ts";

/** Most pictures that are kept before the first check: an agent may ask for pictures in a loop. */
const mostPassed = 1_000;

type PassedPicture = { tool: string; size: string; bytes: number };

export class PictureCheck {
  readonly #blind = new AbortController();
  /** SHA-256 of the bytes -> the picture. */
  readonly #passed = new Map<string, PassedPicture>();
  /** Id of a tool call that answered with a picture -> the picture's SHA-256. */
  readonly #awaited = new Map<string, string>();
  /** Tool calls whose results were in a request. If the harness gave up waiting, the late picture is never shown. */
  readonly #answered = new Set<string>();
  #isSure = false;

  /** Fires when the model is not shown its tool's picture. The reason is `harness_blind`. */
  get blind(): AbortSignal {
    return this.#blind.signal;
  }

  /** `toolCallId`: the model's call that asked for the pictures; null: none that counts. Pictures are base64, as passed on. */
  passed(tool: string, pictures: readonly string[], toolCallId: string | null): void {
    if (this.#isSure || this.#passed.size >= mostPassed) return;
    for (const base64 of pictures) {
      const bytes = Buffer.from(base64, "base64");
      const sha256 = hash("sha256", bytes);
      this.#passed.set(sha256, { tool, size: sizeOf(readPicture(bytes)), bytes: bytes.length });
      if (toolCallId !== null && !this.#answered.has(toolCallId)) this.#awaited.set(toolCallId, sha256);
    }
  }

  /** Checks a request before it is answered. `sent`: its messages with the ids of the harness. Throws `harness_blind`. */
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
    const { tool = "the tool", size = "", bytes = 0 } = this.#passed.get(sha256) ?? {};
    const last = shown.at(-1);
    const instead = last === undefined ? "no picture" : `another one${isStored(last) ? sizeOf(last) : ""} in its place`;
    return `the model does not see what its tools show: ${tool} answered with a picture${size} (${bytes} bytes, SHA-256 ${sha256.slice(0, 12)}…), and the request with its result shows ${instead}`;
  }
}

/** Returns our own ids of the tool results, also where the harness rewrote them. */
function resultsOf(messages: readonly Message[]): string[] {
  const ids = messages.flatMap(({ parts }) => parts.flatMap((part) => (part.type === "tool_result" ? [ownId(part.call_id)] : [])));
  return ids.flatMap((own) => (own === null ? [] : [mintToolCallId(own.call_id, own.index)]));
}

/** null: the picture is a URL, and the request does not have its bytes. */
function hashOf(part: ImagePart): string | null {
  if (isStored(part)) return part.sha256;
  const base64 = /^data:[^,]{0,200};base64,/.exec(part.url.slice(0, 300))?.[0];
  return base64 === undefined ? null : hash("sha256", Buffer.from(part.url.slice(base64.length), "base64"));
}

function sizeOf(facts: { width: number; height: number } | null): string {
  return facts === null ? "" : ` of ${facts.width}x${facts.height}`;
}
