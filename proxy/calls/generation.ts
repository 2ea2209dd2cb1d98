/**
 * One generation: the tries at an engine and what came of them. It belongs to the call and not to a connection, so it
 * goes on when its client leaves, for harnesses come back for it; after a while without any client it is cancelled, but in
 * a sandboxed session, where it ends by itself, by a budget, or with the session.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { AlidadeError, asAlidadeError } from "../../base/errors.ts";
import { type Media, withBytes } from "../../base/media/media.ts";
import type { CallFinished, SamplePart, Tried } from "../../base/schema/session-log.ts";
import type { SampleEvent, SampleRequest, TokenTexts } from "../../engines/index.ts";
import type { Continued } from "../continuity/continued.ts";
import type { EngineLease, OpenPause } from "../pool/engine-lease.ts";
import type { EnginePool } from "../pool/engine-pool.ts";
import type { EngineSlot, Otherwise, ServedBy } from "../pool/engine-slot.ts";
import type { Wish } from "../pool/own-model.ts";
import { toErrorRecord } from "../session/error-record.ts";
import type { TokenBase } from "../session/prompt-tokens.ts";
import { beforeNextTryMs, hasNoAnswer, longestWaitMs, mayHaveSampled, mayTryAgain } from "./another-try.ts";
import { Interrupted, restOf } from "./interrupted/interrupted.ts";
import { type KeptTokens, keepTokens } from "./interrupted/kept-tokens.ts";
import { whyNotOn } from "./interrupted/why-not-on.ts";
import { type LiveEvent, promptBehind, Sample, type SampleResult } from "./sample.ts";

/** Harnesses that lost a connection come back after 8 to 40 s; after this time none does. */
const abandonedAfterMs = 60_000;
/** What is sampled, wherever: the model and the salt of the prefix cache are the engine's that takes it. */
export type GenerationRequest = Omit<SampleRequest, "model" | "cache_salt" | "texts">;

/** Where it may be sampled. */
export type Engines = {
  pool: EnginePool;
  wish: Wish;
  /** Where the bytes of the request's pictures lie. */
  media: Pick<Media, "read"> | null;
  /** Earlier calls whose tokens may begin the prompt. */
  bases: readonly TokenBase[];
  /** Where texts of sampled tokens are kept, by the tokenizer's fingerprint; null: nowhere. Never rejects. */
  texts?: (tokenizer: string | null) => Promise<TokenTexts | null>;
  /** Only with continuity: the prompt as ids at this engine, or the cause of a new rendering. */
  continued?: (lease: EngineLease, signal: AbortSignal) => Promise<Continued>;
};

type PolicyOfCall = Pick<CallFinished, "policy" | "policy_changed" | "tokens_before_hold">;

/** What a call has when a fence has interrupted it. */
type SoFar = { kept: KeptTokens | null; parts: SamplePart[]; interruptions: number };

/** One try and what came of it. `isInterrupted`: it made way for new weights, and its call goes on behind the gate. */
type TryResult = { sample: Sample; failure: AlidadeError | null; isInterrupted: boolean };

export type GenerationResult = SampleResult &
  PolicyOfCall &
  Pick<CallFinished, "parts"> & {
    /** The engine of the last try; null where none was entered. */
    served: ServedBy | null;
  };

export class Generation {
  /** Resolves when the engine has taken the request, or when it is over. */
  readonly accepted: Promise<void>;
  /** What was sampled, failed or not. Never rejects. */
  readonly result: Promise<GenerationResult>;
  /** Ids that the engine has given so far; 0 as long as it gives none while it samples. */
  sampledTokens = 0;
  /** True once an engine refused the call and another try followed. */
  wasRefused = false;
  /** In the order in which they were begun; the last one may be under way. */
  readonly #tries: Tried[] = [];
  /** When it waited at a shut gate, or stood still at its engine. */
  readonly #pauses: OpenPause[] = [];
  readonly #engines: Engines;
  readonly #onSampled: (() => void) | null;
  #isAccepted = false;
  #isOver = false;
  readonly #abort = new AbortController();
  /** The sample of the try that sampled something; no other try follows that one. */
  #sample: Sample | null = null;
  /** Whether the try at work was asked to make way for new weights: from the moment at which it has its place. */
  #interrupted = new Interrupted();
  #followers: ((events: LiveEvent[]) => void)[] = [];
  #abandoned: NodeJS.Timeout | null = null;

  /** `onSampled` is called whenever `sampledTokens` has grown. */
  constructor(engines: Engines, request: GenerationRequest, onSampled: (() => void) | null) {
    this.#engines = engines;
    this.#onSampled = onSampled;
    let accept = (): void => undefined;
    this.accepted = new Promise((resolve) => {
      accept = resolve;
    });
    this.result = this.#run(engines, request, () => {
      this.#isAccepted = true;
      accept();
    });
    // This covers rejections too: callers of the result see the error, and a bug in one call must not end the process.
    const over = (): void => {
      this.#isOver = true;
      accept();
    };
    this.result.then(over, over);
  }

  get tries(): readonly Tried[] {
    return this.#tries;
  }

  get pauses(): readonly OpenPause[] {
    return this.#pauses;
  }

  get isAccepted(): boolean {
    return this.#isAccepted;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  cancel(reason: string): Promise<void> {
    return this.stop(new AlidadeError("cancelled", reason));
  }

  /** Stops it at the engine; what was sampled until then is kept. Resolves when the result is there. */
  async stop(error: AlidadeError): Promise<void> {
    this.#abort.abort(error);
    await this.result;
  }

  /** Called whenever the number of waiting clients changes. */
  watched(clients: number): void {
    if (this.#abandoned) clearTimeout(this.#abandoned);
    this.#abandoned = null;
    if (clients > 0) return;
    this.#abandoned = setTimeout(
      () => void this.cancel(`its client left ${abandonedAfterMs / 1000} s ago and did not come back`),
      abandonedAfterMs,
    );
    this.#abandoned.unref();
    void this.result.then(() => clearTimeout(this.#abandoned ?? undefined));
  }

  /**
   * Hands over what may be shown so far, and from then on what comes as it comes, before the result is there. `show` must
   * not throw. Ends when it is disposed.
   */
  follow(show: (events: LiveEvent[]) => void): Disposable {
    const soFar = this.#sample?.shown() ?? [];
    if (soFar.length > 0) show(soFar);
    this.#followers = [...this.#followers, show];
    return {
      [Symbol.dispose]: () => {
        this.#followers = this.#followers.filter((one) => one !== show);
      },
    };
  }

  async #run({ pool, wish, continued }: Engines, request: GenerationRequest, accept: () => void): Promise<GenerationResult> {
    const tries = this.#tries;
    const avoid = new Set<EngineSlot>();
    const told = {
      onPlaced: (lease: EngineLease) => {
        tries.push(newTry(lease, request.call_id, tries.length + 1));
        this.#interrupted = new Interrupted(whyNotOn(lease, request), request.live === true);
      },
      onPause: (from: number) => this.#pause(from),
      onCancel: (error: AlidadeError) => this.#abort.abort(error),
      onInterrupt: (otherwise: Otherwise) => this.#interrupted.ask(otherwise),
      sampled: () => this.sampledTokens,
    };
    const soFar: SoFar = { kept: null, parts: [], interruptions: 0 };
    for (;;) {
      let lease: EngineLease;
      try {
        lease = await pool.enter(wish, { avoid, signal: this.#abort.signal, ...told });
      } catch (error) {
        return {
          ...new Sample(null, request, [], soFar.kept).result(asAlidadeError(error, "engine_unreachable"), tries),
          ...partsOf(soFar),
          policy: null,
          served: null,
        };
      }
      const tried = tries.at(-1) as Tried;
      startOver(soFar, lease, tries);
      this.sampledTokens = soFar.kept?.ids.length ?? 0;
      const { sample, failure, isInterrupted } = await this.#try(lease, request, { tried, accept, continued, soFar });
      if (isInterrupted) {
        pool.leave(lease, null);
        continue;
      }
      pool.leave(lease, failure);
      avoid.add(lease.slot);
      this.wasRefused ||= failure !== null;
      if (
        !failure ||
        !mayTryAgain(failure, tried, tries.length - soFar.interruptions, lease.slot.resampleLost) ||
        !(await this.#worthWaiting(failure, tries.length - soFar.interruptions, avoid))
      )
        return {
          ...sample.result(failure, tries),
          ...partsOf(soFar, tried.try),
          ...policyOf(lease),
          served: { slot: lease.slot, model: lease.model },
        };
    }
  }

  /**
   * Waits before the next try, unless another engine can take it. Returns false if the engine asks for a wait above `longestWaitMs`.
   * The harness then gets this time. Never throws.
   */
  async #worthWaiting(failure: AlidadeError, tries: number, avoid: ReadonlySet<EngineSlot>): Promise<boolean> {
    const { signal } = this.#abort;
    const { pool, wish } = this.#engines;
    if (!signal.aborted && !pool.offersAnother(wish, avoid)) {
      const waitMs = beforeNextTryMs(failure, tries);
      if (waitMs > longestWaitMs) return false;
      await sleep(waitMs, undefined, { signal }).catch(() => undefined);
    }
    return !signal.aborted;
  }

  /** One try at one engine, behind what earlier ones left. Never throws. */
  async #try(
    lease: EngineLease,
    request: GenerationRequest,
    { tried, accept, continued, soFar }: { tried: Tried; accept: () => void; continued: Engines["continued"]; soFar: SoFar },
  ): Promise<TryResult> {
    const sample = new Sample(lease, request, this.#engines.bases, soFar.kept);
    const interrupted = this.#interrupted;
    const signal = AbortSignal.any([this.#abort.signal, interrupted.signal]);
    let failure: AlidadeError | null = null;
    let isAsked = false;
    try {
      assertTakes(lease, request);
      const ids = soFar.kept ? { prompt_ids: promptBehind(soFar.kept) } : sample.continues(await continued?.(lease, signal));
      const texts = await this.#engines.texts?.(lease.facts.fingerprints?.tokenizer ?? null);
      // The bytes are at hand as long as the engine is asked, and not for the life of the call.
      const messages = withBytes(request.messages, this.#engines.media);
      const asked = soFar.kept ? restOf(request, soFar.kept, tried.try) : request;
      const toSample = {
        ...asked,
        ...ids,
        ...sample.asks,
        messages,
        ...(texts && { texts }),
        model: lease.model,
        cache_salt: lease.cacheSalt,
      };
      const take = (events: SampleEvent[]): void => this.#take(events, sample, tried, accept);
      signal.throwIfAborted();
      isAsked = true;
      if (lease.engine.sampleInto) await lease.engine.sampleInto(toSample, signal, take);
      else for await (const event of lease.engine.sample(toSample, signal)) take([event]);
      await interrupted.assertRead(sample, lease);
    } catch (error) {
      failure = this.#abort.signal.aborted ? asAlidadeError(this.#abort.signal.reason, "cancelled") : asAlidadeError(error, "engine_error");
    }
    failure ??= sample.complaint();
    const isInterrupted = failure !== null && interrupted.signal.aborted && !this.#abort.signal.aborted;
    if (isInterrupted) {
      failure = interrupted.error;
      // Weights that were changed outside of the fence are of an unknown token on.
      const mayKeep = interrupted.mayKeep && !lease.hasChangedPolicy;
      goOnWith(soFar, sample, mayKeep ? ((isAsked ? await keepTokens(sample, lease) : null) ?? soFar.kept) : null, tried.try);
    }
    tried.time = Date.now();
    tried.error = failure && toErrorRecord(failure);
    if (failure) {
      tried.may_have_sampled = isAsked && mayHaveSampled(failure, tried);
      tried.status ??= signal.aborted || hasNoAnswer(failure) ? null : failure.status;
    }
    return { sample, failure, isInterrupted };
  }

  #pause(from: number): (to: number) => void {
    const pause: OpenPause = { from, to: null };
    this.#pauses.push(pause);
    return (to) => {
      pause.to = to;
    };
  }

  #take(events: SampleEvent[], sample: Sample, tried: Tried, accept: () => void): void {
    const before = this.sampledTokens;
    let shown: LiveEvent[] = [];
    for (const event of events) {
      if (event.type === "accepted") {
        tried.status = event.status;
        accept();
      } else if (sample.take(event) && this.#sample !== sample) {
        tried.first_token = Date.now();
        this.#sample = sample;
      }
      if (event.type === "tokens") this.sampledTokens += event.token_ids.length;
      const live = liveEvent(event);
      // Nearly always it is one: an array that grows takes room for many at once.
      if (live !== null) shown = shown.length === 0 ? [live] : [...shown, live];
    }
    sample.mark();
    if (this.sampledTokens > before) this.#onSampled?.();
    if (shown.length > 0) for (const show of this.#followers) show(shown);
  }
}

function liveEvent(event: SampleEvent): LiveEvent | null {
  if (event.type === "text-delta" || event.type === "reasoning-delta" || event.type === "tool-call") return event;
  return event.type === "tokens" && event.tokens ? { type: "tokens", tokens: event.tokens } : null;
}

/** Ids mean something to one tokenizer only: at another engine the call is asked anew from its prompt. */
function startOver(soFar: SoFar, { facts }: EngineLease, tries: readonly Tried[]): void {
  const last = soFar.parts.at(-1);
  if (!soFar.kept || last === undefined) return;
  const [then, now] = [tries[last.try - 1]?.fingerprints ?? null, facts.fingerprints ?? null];
  const isSame = then?.tokenizer != null && then.tokenizer === now?.tokenizer && then.template === now.template;
  if (isSame && facts.token_in) return;
  soFar.kept = null;
  soFar.parts = [];
}

/** Notes what an interrupted try leaves. `kept` null: nothing of it, so the call begins anew from its prompt. */
function goOnWith(soFar: SoFar, sample: Sample, kept: KeptTokens | null, number: number): void {
  const start = soFar.kept?.ids.length ?? 0;
  soFar.interruptions++;
  soFar.kept = kept;
  if (kept === null) soFar.parts = [];
  else if (kept.ids.length > start) soFar.parts.push({ start, try: number, dropped: sample.sampledTokens - kept.ids.length });
}

/** Nothing where one try sampled it all. `last`: the number of the try that sampled the rest. */
function partsOf({ kept, parts }: SoFar, last?: number): Pick<CallFinished, "parts"> {
  if (kept === null || parts.length === 0) return {};
  return { parts: [...parts, ...(last === undefined ? [] : [{ start: kept.ids.length, try: last, dropped: 0 }])] };
}

function newTry(lease: EngineLease, call_id: string, number: number): Tried {
  const { engine, facts } = lease;
  return {
    type: "tried",
    time: 0,
    call_id,
    try: number,
    engine: engine.baseUrl,
    engine_name: lease.slot.name,
    policy: lease.policy,
    ...(lease.policyCheck !== null && { policy_check: lease.policyCheck }),
    ...(!lease.isOfPolicy && { other_policy: true as const }),
    fingerprints: facts.fingerprints ?? null,
    ...(facts.experts && { experts: facts.experts }),
    role_mapping: facts.role_mapping,
    started: Date.now(),
    first_token: null,
    status: null,
    error: null,
  };
}

/**
 * Throws `request_invalid` for a prompt without messages if the engine takes only conversations, and for logprobs if it gives none.
 */
function assertTakes({ engine, facts }: EngineLease, request: Pick<SampleRequest, "prompt" | "token_logprobs">): void {
  if (request.prompt && !engine.takesPrompts)
    throw new AlidadeError("request_invalid", `the engine ${engine.name} takes messages only: ask for a chat completion`, {
      param: "prompt",
    });
  if (request.token_logprobs && !(engine.tellsTokens && facts.logprobs))
    throw new AlidadeError(
      "request_invalid",
      `logprobs: the engine ${engine.name} gives none with its tokens; leave them out, or ask another engine.`,
      { param: "logprobs" },
    );
}

function policyOf({ policyNow, hasChangedPolicy, sampledBeforeHold }: EngineLease): PolicyOfCall {
  return {
    policy: policyNow,
    ...(hasChangedPolicy && { policy_changed: true }),
    ...(sampledBeforeHold > 0 && { tokens_before_hold: sampledBeforeHold }),
  };
}
