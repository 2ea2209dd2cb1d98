/** What one try has sampled so far, and in the end what is recorded of it. */

import { AlidadeError } from "../../base/errors.ts";
import { imagesIn, isStored } from "../../base/media/stored-picture.ts";
import type { ImagePart, Message, Part, Usage } from "../../base/schema/message.ts";
import type { Policy } from "../../base/schema/policy.ts";
import type { SampledToken } from "../../base/schema/sampled-token.ts";
import type { CallFinished, PromptPicture, Tried, WeightSpan } from "../../base/schema/session-log.ts";
import { type IdText, textOfIds } from "../../base/tokens/id-text.ts";
import { type ImageSpan, plantedPad } from "../../base/tokens/image-spans.ts";
import { GrowingText } from "../../base/wire/growing-text.ts";
import { type EngineFacts, isUnderGrammar, type RoutedExperts, type SampleEvent, type SampleRequest } from "../../engines/index.ts";
import type { Continued } from "../continuity/continued.ts";
import type { EngineLease } from "../pool/engine-lease.ts";
import { toErrorRecord } from "../session/error-record.ts";
import { areSameWeights, type PromptTokens, promptTokens, type TokenBase } from "../session/prompt-tokens.ts";
import { isMisread, type Keepable, type KeptTokens, type Mark, type SaidSoFar } from "./interrupted/kept-tokens.ts";
import { type RoutedBase, type SampledRouting, sampledRouting } from "./numbers/sampled-routing.ts";
import { HeldSets, type SampledSupport, sampledSupport, whySupportUnasked } from "./numbers/sampled-support.ts";

/** What a live relay shows of it. */
export type LiveEvent =
  | Extract<SampleEvent, { type: "text-delta" | "reasoning-delta" | "tool-call" }>
  | { type: "tokens"; tokens: SampledToken[] };

export type SampleResult = Omit<
  CallFinished,
  | "type"
  | "time"
  | "call_id"
  | "prompt_ids"
  | "pauses"
  | "policy"
  | "policy_changed"
  | "tokens_before_hold"
  | "parts"
  | "routing"
  | "routing_missing"
  | "support"
  | "support_missing"
> & {
  /** The experts that its tokens took; null: the model is not known to have experts. */
  routed: SampledRouting | null;
  /** The tokens that its sampling kept; null: it left out none. */
  supported: SampledSupport | null;
  /** What `error` is the record of. */
  failure: AlidadeError | null;
  prompt: PromptTokens | null;
  tries: Tried[];
};

/** What a `Sample` reads of its request. */
export type AskedOfSample = Pick<SampleRequest, "sampling" | "tools" | "tool_choice" | "live" | "messages" | "prompt" | "token_logprobs">;

export class Sample implements Keepable {
  readonly #engine: string | null;
  readonly #facts: EngineFacts | null;
  readonly #policy: Policy | null;
  readonly #grammar: boolean;
  readonly #bases: readonly TokenBase[];
  /** The pictures of the request. */
  readonly #images: readonly ImagePart[];
  /** Where their pads stand; null: the engine has not told it. */
  #spans: ImageSpan[] | null = null;
  #routing: RoutedExperts | "unreadable" | null = null;
  /** The first rows, which the engine is asked to leave out of `#routing`. */
  #routedBase: RoutedBase | null = null;
  /** The engine is not asked for the experts of this request. */
  readonly #isUnasked: boolean;
  /** Why the engine is not asked which tokens the sampling keeps; null: it is. */
  readonly #unsupported: ReturnType<typeof whySupportUnasked>;
  readonly #support = new HeldSets();
  #prompt: PromptTokens | null = null;
  #continued: Continued | null = null;
  /** False when the engine reports other prompt ids than those that it was given. */
  #tookThePrompt = true;
  readonly #sampledIds: number[] = [];
  readonly #logprobs: (number | null)[] = [];
  readonly #tokens: SampledToken[] = [];
  readonly #parts: Part[] = [];
  /** The last part, where it is text and may go on. */
  #open: { type: "text" | "reasoning"; text: GrowingText } | null = null;
  #end: Extract<SampleEvent, { type: "end" }> | null = null;
  /** Where an interrupted sample may be cut: none where its client has seen it. */
  readonly #marks: Mark[] | null;
  readonly #lengths = { reasoning: 0, text: 0 };
  /** Nothing but a thought and a text behind it, so far. */
  #isPlain = true;
  readonly #kept: KeptTokens | null;
  /** The first thing that was said behind what was kept. */
  #firstSaid: { type: Part["type"]; text: string } | null = null;

  /** No lease: the call never came to an engine. `kept`: what an earlier request sampled, behind which this one goes on. */
  constructor(lease: EngineLease | null, request: AskedOfSample, bases: readonly TokenBase[], kept: KeptTokens | null = null) {
    this.#bases = bases;
    this.#images = imagesIn(request.messages);
    this.#marks = request.live ? null : [];
    this.#kept = kept;
    if (kept) this.#goOnFrom(kept);
    this.#engine = lease?.engine.name ?? null;
    this.#facts = lease?.facts ?? null;
    const isTold = this.#facts?.routing === "all" || (request.live !== true && request.prompt === undefined);
    this.#isUnasked = this.#images.length > 0 || !isTold;
    this.#policy = lease?.policy ?? null;
    this.#grammar = isUnderGrammar(request, lease?.engine ?? null);
    this.#unsupported = lease === null ? "uncut" : whySupportUnasked(request, lease.facts, this.#grammar);
  }

  /** What the engine is asked about its sampling. */
  get asks(): Pick<SampleRequest, "support"> {
    return this.#unsupported === null ? { support: true } : {};
  }

  /** Notes how the prompt is made; what of it the engine is asked with. */
  continues(continued: Continued | undefined): Pick<SampleRequest, "prompt_ids" | "routing_start"> {
    this.#continued = continued ?? null;
    if (!continued?.prompt_ids) return {};
    const { record, prompt_ids } = continued;
    const isAsked = this.#facts?.routing && !this.#isUnasked && record.mode === "continued";
    this.#routedBase = isAsked ? this.#routedWithin(record.from_call_id, record.kept) : null;
    return { prompt_ids, ...(this.#routedBase && { routing_start: this.#routedBase.length }) };
  }

  /**
   * Returns how many of the first `length` tokens have experts on record in the earlier call `call_id`. Returns null if none has, or
   * if the weights of the two calls differ.
   */
  #routedWithin(call_id: string | null, length: number): RoutedBase | null {
    const base = this.#bases.find(({ id }) => id === call_id);
    const by = base?.routedBy ?? null;
    // Other weights pick other experts for the same tokens. The answer names the model; before it, assume the earlier call's model.
    const model = this.#end === null ? (by?.model ?? null) : (this.#end.engine_model ?? null);
    const isSame = by !== null && areSameWeights(by, { model, policy: this.#policy });
    const routed = isSame ? Math.min(base?.routedUntil ?? 0, length) : 0;
    return call_id === null || routed === 0 ? null : { call_id, length: routed };
  }

  /** True when the event shows that something was sampled. */
  take(event: Exclude<SampleEvent, { type: "accepted" }>): boolean {
    switch (event.type) {
      case "prompt":
        if (this.#kept) this.#tookThePrompt = promptBehind(this.#kept).is(textOfIds(event));
        else {
          this.#prompt = promptTokens(this.#bases, event);
          // With pictures its pads are more than those that were given: the engine compares the two.
          this.#tookThePrompt = this.#images.length > 0 || (this.#continued?.prompt_ids?.is(textOfIds(event)) ?? true);
        }
        return false;
      case "images":
        this.#spans = event.spans;
        return false;
      case "routing":
        this.#routing = event.routing ?? "unreadable";
        return false;
      case "tokens":
        for (const id of event.token_ids) this.#sampledIds.push(id);
        for (const logprob of event.logprobs) this.#logprobs.push(logprob);
        for (const token of event.tokens ?? []) this.#tokens.push(token);
        for (const set of event.support ?? []) this.#support.add(set);
        return true;
      case "text-delta":
      case "reasoning-delta":
        this.#grow(event.type === "text-delta" ? "text" : "reasoning", event.text);
        return true;
      case "tool-call":
        this.#closePart();
        this.#isPlain = false;
        this.#firstSaid ??= { type: "tool_call", text: "" };
        this.#parts.push({ type: "tool_call", id: event.id, name: event.name, arguments: event.arguments, kind: "function" });
        return true;
      case "end":
        this.#end = event;
        return false;
    }
  }

  /** All that came at once was taken. */
  mark(): void {
    if (this.#isPlain && this.#sampledIds.length > 0) this.#marks?.push({ ids: this.#sampledIds.length, ...this.#lengths });
  }

  get marks(): readonly Mark[] {
    return this.#marks ?? [];
  }

  get sampledTokens(): number {
    return this.#sampledIds.length;
  }

  idsUntil({ ids }: Mark): number[] {
    return this.#sampledIds.slice(0, ids);
  }

  saidUntil({ reasoning, text }: Mark): SaidSoFar {
    this.#closePart();
    const said = (type: "reasoning" | "text", length: number): string => {
      const part = this.#parts.find((one) => one.type === type);
      return part?.type === type ? part.text.slice(0, length) : "";
    };
    return { reasoning: said("reasoning", reasoning), text: said("text", text) };
  }

  keep(mark: Mark): KeptTokens | null {
    if (this.#prompt === null || !this.#tookThePrompt || this.#end?.misaligned) return null;
    const { reasoning, text } = this.saidUntil(mark);
    const parts: Part[] = [
      ...(reasoning === "" ? [] : [{ type: "reasoning" as const, text: reasoning }]),
      ...(text === "" ? [] : [{ type: "text" as const, text }]),
    ];
    const until = <T>(list: readonly T[]): T[] => list.slice(0, mark.ids);
    return {
      prompt: this.#prompt,
      ids: until(this.#sampledIds),
      logprobs: until(this.#logprobs),
      tokens: until(this.#tokens),
      support: until(this.#support.sets),
      parts,
    };
  }

  /** Whether the engine's parser took what came behind the kept tokens for something else than they were. */
  async isMisread(detokenize: (ids: number[]) => Promise<string>): Promise<boolean> {
    if (!this.#kept || this.#firstSaid === null) return false;
    const { type, text } = this.#firstSaid;
    return isMisread(this.#kept.parts, type, text, await detokenize(this.#sampledIds.slice(this.#kept.ids.length)));
  }

  #goOnFrom({ prompt, ids, logprobs, tokens, support, parts }: KeptTokens): void {
    this.#prompt = prompt;
    for (const id of ids) this.#sampledIds.push(id);
    for (const logprob of logprobs) this.#logprobs.push(logprob);
    for (const token of tokens) this.#tokens.push(token);
    for (const set of support) this.#support.add(set);
    for (const part of parts) {
      this.#parts.push({ ...part });
      if (part.type === "text" || part.type === "reasoning") this.#lengths[part.type] += part.text.length;
    }
  }

  /** The turn so far as the events of a live relay. */
  shown(): LiveEvent[] {
    this.#closePart();
    const tokens: LiveEvent[] = this.#tokens.length > 0 ? [{ type: "tokens", tokens: [...this.#tokens] }] : [];
    const said = this.#parts.flatMap((part): LiveEvent[] => {
      if (part.type === "tool_call") return [{ type: "tool-call", id: part.id, name: part.name, arguments: part.arguments }];
      if (part.type === "text" || part.type === "reasoning") return [{ type: `${part.type}-delta`, text: part.text }];
      return [];
    });
    return [...tokens, ...said];
  }

  /** An answer that came to its end and is none all the same. */
  complaint(): AlidadeError | null {
    if (this.#end?.finish_reason === "abort")
      return new AlidadeError("engine_aborted", `the engine aborted the generation after ${this.#sampledIds.length} tokens`);
    if (this.#end?.finish_reason === "error")
      return new AlidadeError("engine_error", "the engine ended its answer with a finish reason of error");
    return null;
  }

  result(failure: AlidadeError | null, tries: Tried[]): SampleResult {
    const hasIds = this.#prompt !== null && (this.#sampledIds.length > 0 || failure !== null || this.#end?.usage.sampled_tokens === 0);
    const media = hasIds ? this.#media() : null;
    const missing = this.#missing(hasIds) ?? (hasIds ? this.#planted(media) : null);
    const supported = hasIds ? this.#supported() : null;
    this.#closePart();
    const message: Message | null = this.#parts.length > 0 || !failure ? { role: "assistant", parts: this.#parts } : null;
    return {
      prompt: hasIds ? this.#prompt : null,
      routed: missing === null || missing.startsWith("no_logprob") ? this.#routed() : null,
      supported,
      ...(media && { media }),
      sampled_ids: hasIds ? this.#sampledIds : null,
      logprobs: hasIds && this.#logprobs.some((one) => one !== null) ? this.#logprobs : null,
      logprob_semantics: {
        // Logprobs over the kept tokens are those after temperature and cut, whatever others of the server are.
        kind: supported && !("missing" in supported) ? "processed" : (this.#facts?.logprob_semantics ?? null),
        grammar: this.#grammar,
        ...(this.#grammar && { grammar_logprobs: this.#facts?.grammar_logprobs ?? null }),
      },
      ...(this.#tokens.length > 0 && this.#tokens.length === this.#sampledIds.length && { tokens: this.#tokens }),
      missing,
      message,
      finish_reason: failure ? "error" : (this.#end?.finish_reason ?? "error"),
      stop: this.#end?.stop ?? null,
      usage: this.#usage(),
      engine: this.#engine,
      engine_model: this.#end?.engine_model ?? null,
      ...(this.#end?.weights ? { weights: this.#end.weights.map((span) => behind(span, this.#kept?.ids.length ?? 0)) } : {}),
      ...(this.#continued ? { continuity: this.#continued.record } : {}),
      error: failure && toErrorRecord(failure),
      failure,
      tries,
    };
  }

  #supported(): SampledSupport | null {
    if (this.#unsupported === "uncut" || this.#sampledIds.length === 0) return null;
    return this.#unsupported === null ? sampledSupport(this.#support.sets, this.#sampledIds.length) : { missing: this.#unsupported };
  }

  /** Call it only if the ids of the call can be trusted. */
  #routed(): SampledRouting | null {
    if (this.#prompt === null || this.#sampledIds.length === 0) return null;
    const { base_call_id, base_len } = this.#prompt.delta;
    const asked = this.#routedBase;
    return sampledRouting({
      facts: this.#facts,
      told: this.#routing,
      isUnasked: this.#isUnasked,
      tokens: this.#prompt.whole.length + this.#sampledIds.length,
      // The request left out the experts of an earlier call. If another model answered, its experts for these tokens are unknown.
      asked: asked && this.#routedWithin(asked.call_id, asked.length),
      known: this.#routedWithin(base_call_id, base_len),
    });
  }

  /** Ids, logprobs and the engine's own count must agree, or nothing of the call can be trained. */
  #missing(hasIds: boolean): string | null {
    if (!hasIds) return "no_token_ids: the engine gave no token ids for this call";
    if (this.#end?.misaligned) return `misaligned: ${this.#end.misaligned}`;
    if (!this.#tookThePrompt) return "misaligned: the engine sampled on another prompt than the ids that it was given";
    const moved = this.#movedPicture();
    if (moved !== null) return `misaligned: ${moved}`;
    const counted = this.#end ? this.#usage().sampled_tokens : undefined;
    // This comes before the logprobs: a call without logprobs needs the ids even more. A broken answer has no count.
    if (counted !== undefined && counted !== this.#sampledIds.length)
      return `misaligned: the engine counted ${counted ?? "no"} sampled tokens and gave ${this.#sampledIds.length} ids`;
    if (this.#logprobs.every((one) => one === null) && this.#sampledIds.length > 0)
      return "no_logprob: the engine gave no logprobs for this call";
    if (this.#logprobs.some((one) => one === null)) return "no_logprob: the logprob of at least one sampled token is missing";
    return null;
  }

  /** As the engine counted it; behind kept tokens its prompt held those, and what it read of them from its cache says nothing of the call. */
  #usage(): Usage {
    const usage = this.#end?.usage ?? { prompt_tokens: null, cached_tokens: null, sampled_tokens: null, reasoning_tokens: null };
    if (!this.#kept) return usage;
    const kept = this.#kept.ids.length;
    const { prompt_tokens, sampled_tokens } = usage;
    return {
      prompt_tokens: prompt_tokens === null ? null : prompt_tokens - kept,
      cached_tokens: null,
      sampled_tokens: sampled_tokens === null ? null : sampled_tokens + kept,
      reasoning_tokens: null,
    };
  }

  /** The pictures by their places; null where there are none, or one of them has no place or no hash. */
  #media(): PromptPicture[] | null {
    const spans = this.#spans;
    if (spans === null || this.#images.length === 0 || spans.length !== this.#images.length) return null;
    const media = this.#images.flatMap((part, at) => (isStored(part) ? [{ sha256: part.sha256, ...(spans[at] as ImageSpan) }] : []));
    return media.length === spans.length ? media : null;
  }

  /** A prompt that was given holds the earlier pictures at their places. */
  #movedPicture(): string | null {
    const earlier = this.#continued?.prompt_ids ? (this.#continued.media ?? []) : [];
    const at = earlier.findIndex(({ start, length }, index) => {
      const now = this.#spans?.[index];
      return now?.start !== start || now.length !== length;
    });
    return at === -1 ? null : `picture ${at} of the prompt has another place than in the earlier call`;
  }

  /** Only a model that takes pictures has a pad. Where the places are not told the call is not trained in any case. */
  #planted(media: PromptPicture[] | null): string | null {
    const tokens = this.#facts?.images;
    if (!tokens || !this.#prompt || (media === null && this.#images.length > 0)) return null;
    const planted = plantedPad(this.#prompt.whole.toIds(), this.#sampledIds, media ?? [], tokens);
    return planted && `planted_placeholder: ${planted}`;
  }

  #grow(type: "text" | "reasoning", text: string): void {
    if (type === "reasoning" && this.#lengths.text > 0) this.#isPlain = false;
    this.#lengths[type] += text.length;
    this.#firstSaid ??= { type, text };
    if (this.#open?.type !== type) {
      this.#closePart();
      this.#open = { type, text: new GrowingText() };
    }
    this.#open.text.append(text);
  }

  /** What goes on behind it joins it again. */
  #closePart(): void {
    if (!this.#open) return;
    const { type, text } = this.#open;
    const last = this.#parts.at(-1);
    if (last?.type === type) last.text += text;
    else this.#parts.push({ type, text: text.toString() });
    this.#open = null;
  }
}

/** The prompt of the request that goes on from there. */
export function promptBehind({ prompt, ids }: KeptTokens): IdText {
  return prompt.whole.append(ids);
}

/** Moves the span behind the `kept` tokens of the call, which the engine does not count. */
function behind({ version, start, end }: WeightSpan, kept: number): WeightSpan {
  return { version, start: start + kept, end: end === null ? null : end + kept };
}
