/** A call as the proxy holds it: its log entries, with the deltas unfolded, and the generation while it runs. */
import { hash } from "node:crypto";
import { AlidadeError } from "../../errors.ts";
import { canonicalJson } from "../../schema/ids.ts";
import { type Message, type Turn, textOf } from "../../schema/message.ts";
import type { CallBegun, CallFinished, EngineFingerprints } from "../../schema/session-log.ts";
import type { IdText } from "../../tokens/id-text.ts";
import type { OpenPause } from "../pool/engine-lease.ts";
import type { EngineSlot } from "../pool/engine-slot.ts";
import { fromErrorRecord } from "./error-record.ts";
import type { Generation } from "./generation.ts";

/** Whether the client got the answer: `none` is unknown or still being written. */
export type Delivery = "none" | "complete" | "cut" | "error";

/** What is kept of how a call ended: its ids are in `idText`, and the log has all of it. */
export type FinishedFacts = Omit<CallFinished, "prompt_ids" | "sampled_ids" | "logprobs">;

export class Call {
  readonly begun: CallBegun;
  /** The whole conversation as the engine gets it; shares its objects with the calls before it. */
  readonly messages: Message[];
  finished: FinishedFacts | null = null;
  /** Why it failed, as long as this process lives: the record keeps less of it. */
  failure: AlidadeError | null = null;
  /** prompt ids ‖ sampled ids; null where the engine gave none. */
  idText: IdText | null = null;
  promptLength = 0;
  /** The call whose tokens begin this prompt in the log, and their number. */
  promptBase: { call_id: string; length: number } | null = null;
  /** The engine of its last try, with that one's name of the model; null where none was entered, or in another process. */
  servedAs: { slot: EngineSlot; model: string } | null = null;
  /** Fingerprints of its template and tokenizer; null where they are unknown. */
  fingerprints: EngineFingerprints | null = null;
  delivery: Delivery = "none";
  generation: Generation | null = null;
  /** When it waited at a shut gate, or stood still at its engine. */
  readonly pauses: OpenPause[] = [];
  /** Resolves when it is written down that the call was begun; rejects when that could not be. */
  recorded: Promise<void> = Promise.resolve();
  /** False while that is being written: it may yet fail, and then no other call's record can have named this one. */
  isRecorded = true;
  /** Resolves when the generation's outcome is durable; rejects with the call's failure. */
  settled: Promise<void> = Promise.resolve();
  /** Writes down what was sampled; there only until that has worked. */
  unsaved: (() => Promise<void>) | null = null;
  #saving: Promise<void> | null = null;
  /** Client connections that are waiting for this call's answer. */
  readonly connections = new Set<{ readonly closed: Promise<void>; readonly isClosed: boolean }>();

  constructor(begun: CallBegun, messages: Message[]) {
    this.begun = begun;
    this.messages = messages;
  }

  get id(): string {
    return this.begun.call_id;
  }

  /** The model's turn; null where there is nothing to answer with. */
  get turn(): Turn | null {
    const finished = this.finished;
    if (!finished?.message || finished.error) return null;
    return { message: finished.message, finish_reason: finished.finish_reason, stop: finished.stop, usage: finished.usage };
  }

  /** The list that a later call's messages may be a delta of. */
  get conversation(): Message[] {
    return this.finished?.message ? [...this.messages, this.finished.message] : this.messages;
  }

  /** The same as numbers, made anew on each read. */
  get tokens(): Int32Array | null {
    return this.idText && Int32Array.from(this.idText.toIds());
  }

  finish({ prompt_ids, sampled_ids, logprobs: _, ...outcome }: CallFinished, prompt: IdText | null): void {
    this.finished = outcome;
    this.idText = prompt?.append(sampled_ids ?? []) ?? null;
    this.promptLength = prompt?.length ?? 0;
    if (prompt_ids?.base_call_id) this.promptBase = { call_id: prompt_ids.base_call_id, length: prompt_ids.base_len };
  }

  /** Writes down what was sampled, once, however many ask for it; after a failure the next one tries again. */
  save(): Promise<void> {
    this.#saving ??= (async () => {
      try {
        await this.unsaved?.();
        this.unsaved = null;
      } finally {
        this.#saving = null;
      }
    })();
    return this.#saving;
  }

  /** Throws the recorded failure; the original error where it happened in this process. */
  assertSampled(): void {
    const error = this.failure ?? this.finished?.error;
    if (error) throw error instanceof AlidadeError ? error : fromErrorRecord(error);
  }
}

/** Equal messages give equal keys; order of JSON keys does not count. */
export function messageKey(message: Message): string {
  const known = keys.get(message);
  if (known !== undefined) return known;
  // Hashed, for it is kept as long as the message: its text would be in memory twice.
  const key = hash("sha256", canonicalJson(message), "base64");
  keys.set(message, key);
  return key;
}

const keys = new WeakMap<Message, string>();

export function isSameMessage(a: Message, b: Message | undefined): boolean {
  return b !== undefined && (a === b || messageKey(a) === messageKey(b));
}

/** The text of a message as harnesses leave it: outer white space is theirs to trim. */
export function normalText(message: Message): string {
  return textOf(message).trim();
}
