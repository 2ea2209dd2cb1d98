/** A call as its log entries tell it, with the deltas unfolded. What it does in this process is a `CallRun`. */
import { hash } from "node:crypto";
import { canonicalJson } from "../../base/schema/ids.ts";
import { type Message, type Turn, textOf } from "../../base/schema/message.ts";
import { type Policy, samePolicy } from "../../base/schema/policy.ts";
import type { Answered, CallBegun, CallFinished, EngineFingerprints, Replayed, Tried } from "../../base/schema/session-log.ts";
import type { IdText } from "../../base/tokens/id-text.ts";
import type { CallWeights } from "./prompt-tokens.ts";

/** Whether the client got the answer: `none` is unknown. */
export type Delivery = "none" | Answered["delivery"];

/** What is kept of how a call ended: its ids are text, and the log has all of it. */
export type FinishedFacts = Omit<CallFinished, "prompt_ids" | "sampled_ids" | "logprobs">;

/** prompt ids ‖ sampled ids. `base`: the call with whose tokens the prompt begins in the log, and how many those are. */
type CallIds = { text: IdText; promptLength: number; base: { call_id: string; length: number } | null };

/** `begun` without a run in this process: the process that ran it was killed. `ids` are null where the engine gave none. */
type CallStage = { type: "begun" } | { type: "finished"; outcome: FinishedFacts; ids: CallIds | null };

export class Call {
  readonly begun: CallBegun;
  /** The whole conversation as the engine gets it; shares its objects with the calls before it. */
  readonly messages: Message[];
  #stage: CallStage = { type: "begun" };
  #delivery: Delivery = "none";
  #fingerprints: EngineFingerprints | null = null;
  #policyOfTry: Policy | null = null;

  constructor(begun: CallBegun, messages: Message[]) {
    this.begun = begun;
    this.messages = messages;
  }

  get id(): string {
    return this.begun.call_id;
  }

  /** null: it is not known what came of it. */
  get outcome(): FinishedFacts | null {
    return this.#stage.type === "finished" ? this.#stage.outcome : null;
  }

  get delivery(): Delivery {
    return this.#delivery;
  }

  /** Template and tokenizer of its last try; null where they are unknown. */
  get fingerprints(): EngineFingerprints | null {
    return this.#fingerprints;
  }

  /** prompt ids ‖ sampled ids; null where the engine gave none. */
  get idText(): IdText | null {
    return this.#ids?.text ?? null;
  }

  /** How many of its first tokens have their experts on record, in this call or in the calls before it. */
  get routedUntil(): number {
    const routing = this.outcome?.routing;
    return routing ? routing.start + routing.rows : 0;
  }

  /** The weights that picked these experts. null if no experts are on record, or if the weights changed during the call. */
  get routedBy(): CallWeights | null {
    const { outcome } = this;
    if (!outcome?.routing || outcome.policy_changed || !samePolicy(outcome.policy, this.#policyOfTry)) return null;
    return { model: outcome.engine_model, policy: outcome.policy };
  }

  get promptLength(): number {
    return this.#ids?.promptLength ?? 0;
  }

  /** The model's turn; null where there is nothing to answer with. */
  get turn(): Turn | null {
    const { outcome } = this;
    if (!outcome?.message || outcome.error) return null;
    const { message, finish_reason, stop, usage, tokens } = outcome;
    return { message, finish_reason, stop, usage, ...(tokens && { tokens }) };
  }

  /** The list that a later call's messages may be a delta of. */
  get conversation(): Message[] {
    const message = this.outcome?.message;
    return message ? [...this.messages, message] : this.messages;
  }

  /** Its ids as numbers, made anew each time. */
  get tokens(): Int32Array | null {
    return this.idText && Int32Array.from(this.idText.toIds());
  }

  /** In the log its prompt begins with all tokens of this call. */
  goesOnFrom(call: Call): boolean {
    const base = this.#ids?.base;
    return base?.call_id === call.id && base.length === call.idText?.length;
  }

  /** Takes an entry of its log. `prompt`: the whole prompt of a finished one, null where it has none. */
  apply(entry: Tried | CallFinished | Answered | Replayed, prompt: IdText | null = null): void {
    if (entry.type === "tried") {
      this.#fingerprints = entry.fingerprints;
      this.#policyOfTry = entry.policy;
    } else if (entry.type === "call_finished") this.#stage = finishedWith(entry, prompt);
    else this.#delivery = entry.delivery;
  }

  get #ids(): CallIds | null {
    return this.#stage.type === "finished" ? this.#stage.ids : null;
  }
}

function finishedWith({ prompt_ids, sampled_ids, logprobs: _, ...outcome }: CallFinished, prompt: IdText | null): CallStage {
  const base = prompt_ids?.base_call_id ? { call_id: prompt_ids.base_call_id, length: prompt_ids.base_len } : null;
  return { type: "finished", outcome, ids: prompt && { text: prompt.append(sampled_ids ?? []), promptLength: prompt.length, base } };
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
