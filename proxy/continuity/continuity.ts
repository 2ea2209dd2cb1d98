/**
 * Token continuity: a later turn's prompt is the earlier turn's very tokens and what was appended to them,
 *
 *     prompt(t+1) = prompt(t) ‖ sampled(t) ‖ what closes the turn ‖ the new messages and the generation prompt
 *
 * so that nothing that was sampled is tokenised, dumped or stripped again. What follows the sample is printed by the
 * engine's own template. Where a step does not hold the call is rendered anew, with its cause, and the next turns go on
 * from there. Nothing is kept here but answers about templates: the conversations are the session's calls themselves.
 */

import { AlidadeError } from "../../base/errors.ts";
import { type Media, withBytes } from "../../base/media/media.ts";
import { imagesIn, isStored } from "../../base/media/stored-picture.ts";
import { hashOf } from "../../base/schema/ids.ts";
import { type Message, type Tool, textOf } from "../../base/schema/message.ts";
import type { RenderCause } from "../../base/schema/session-log.ts";
import { IdText } from "../../base/tokens/id-text.ts";
import { foldImages } from "../../base/tokens/image-spans.ts";
import { startsWith } from "../../base/tokens/prefix.ts";
import type { Engine, EngineFacts, RenderSource } from "../../engines/index.ts";
import type { EngineLease } from "../pool/engine-lease.ts";
import type { Call } from "../session/call.ts";
import type { Session } from "../session/session.ts";
import type { Close, Renderer } from "./anchor.ts";
import type { Continued } from "./continued.ts";
import { type EarlierTurn, earlierTurn, settingsKey } from "./earlier-turn.ts";
import { hasThought, keptReasoning } from "./kept-reasoning.ts";
import { shapeOf } from "./shape.ts";
import { Suffixes, wasRefused } from "./suffixes.ts";

export class Continuity {
  readonly #suffixes = new Suffixes();

  /** The prompt of this call at this engine. Throws only where the signal ended it: what cannot be found out is a cause. */
  async promptOf(session: Session, call: Call, tools: Tool[], lease: EngineLease, signal: AbortSignal): Promise<Continued> {
    const earlier = earlierTurn(call, session.call(call.begun.parent_call_id), session.spec.restore);
    if (typeof earlier === "string") return rendered(earlier);
    const { engine, facts } = lease;
    const images = imagesIn(call.messages).length > 0;
    if (images && !takesPictures(session, call, earlier.from, facts)) return rendered("images");
    if (!facts.token_in || !engine.render || !engine.tokenize || !engine.detokenize) return rendered("no_token_in");
    const { template = null, tokenizer = null } = facts.fingerprints ?? {};
    const before = earlier.from.fingerprints;
    // Unknown ones are equal to nothing: ids mean something to one tokenizer only.
    if (template === null || tokenizer === null || before?.template !== template || before.tokenizer !== tokenizer)
      return rendered("engine_changed");
    try {
      const renderer = rendererAt(engine, lease.model, call, session.media, signal);
      const kind = hashOf([template, tokenizer, settingsKey(call.begun)]);
      return await this.#continue({ session, call, tools, earlier, renderer, kind });
    } catch (error) {
      signal.throwIfAborted();
      return rendered(wasRefused(error) ? "no_suffix" : "probe_failed");
    }
  }

  async #continue({ session, call, tools, earlier, renderer, kind }: Continuing): Promise<Continued> {
    const { from, turn, appended } = earlier;
    const kept = unexpanded(from);
    if (session.spec.restore !== "full" && !(await this.#keepsReasoning(call, earlier, renderer, kind, tools.length > 0)))
      return rendered("reasoning_dropped");
    const close: Close = earlier.isCutOff ? null : (kept.tail(1)[0] as number);
    if (close === null && !(await endsWithItsText(renderer, from, turn))) return rendered("truncated");
    const shape = shapeOf(from.messages, turn, appended, tools.length > 0);
    if (!(await this.#printsAll(call, tools, from, renderer, kind))) return rendered("no_suffix");
    const suffix = await this.#suffixes.suffixOf({
      renderer,
      kind,
      shape,
      turn,
      appended,
      tools,
      toolsHash: call.begun.tools_hash,
      close,
      kept,
    });
    if (typeof suffix === "string") return rendered(suffix);
    const prompt_ids = kept.append(suffix);
    return {
      prompt_ids,
      media: from.outcome?.media,
      record: {
        mode: "continued",
        from_call_id: from.id,
        kept: (from.idText as IdText).length,
        appended: suffix.length,
        closed_for_it: earlier.isCutOff,
      },
    };
  }

  /**
   * Some templates (Kimi K3's) print the tool choice and the response format behind the last message, and a tokenizer's
   * route may not get them. With either of them set, the route is compared with a prompt that the engine rendered itself.
   */
  async #printsAll({ begun }: Call, tools: Tool[], from: Call, renderer: Renderer, kind: string): Promise<boolean> {
    if ((begun.tool_choice ?? "auto") === "auto" && begun.effective_sampling.response_format === undefined) return true;
    return this.#suffixes.isAsSampled(kind, begun.tools_hash, async () => {
      if (from.outcome?.continuity?.mode !== "rendered")
        throw new AlidadeError("request_invalid", "no prompt that the engine rendered is at hand to hold its tokenizer's route against");
      const ids = await renderer.ids(from.messages, tools);
      const before = unexpanded(from);
      return ids.length === before.length - sampledLength(from) && startsWith(before.toIds(), ids);
    });
  }

  /** Would the template still print all reasoning that the earlier call's tokens hold? */
  async #keepsReasoning(
    call: Call,
    { from, turn, appended }: EarlierTurn,
    renderer: Renderer,
    kind: string,
    hasTools: boolean,
  ): Promise<boolean> {
    const before = [...from.messages, turn];
    if (!before.some(hasThought)) return true;
    const ask = this.#suffixes.reasoningMemory(kind, hasTools);
    const now = await keptReasoning(renderer, call.messages, hasTools, ask);
    if (hasThought(turn) && !now.has(from.messages.length)) return false;
    const then = await keptReasoning(renderer, from.messages, hasTools, ask);
    return appended.length > 0 && [...then].every((index) => now.has(index));
  }
}

type Continuing = { session: Session; call: Call; tools: Tool[]; earlier: EarlierTurn; renderer: Renderer; kind: string };

const rendered = (cause: RenderCause): Continued => ({ record: { mode: "rendered", cause }, prompt_ids: null });

/** A turn that was cut off must end in the very text that the harness has of it, or its close would stand elsewhere. */
async function endsWithItsText(renderer: Renderer, { tokens, promptLength, outcome }: Call, turn: Message): Promise<boolean> {
  const sampled = await renderer.detokenize([...(tokens as Int32Array).subarray(promptLength)]);
  const last = turn.parts.at(-1);
  const text = last?.type === "text" ? last.text : textOf(turn);
  if (typeof outcome?.stop === "string") return sampled.includes(text + outcome.stop);
  return sampled.endsWith(text);
}

/** Its tokens as a prompt has them that is given: one pad for each picture. */
function unexpanded(from: Call): IdText {
  const whole = from.idText as IdText;
  const media = from.outcome?.media;
  return media ? IdText.of(foldImages(whole.toIds(), media)) : whole;
}

function sampledLength(from: Call): number {
  return (from.idText as IdText).length - from.promptLength;
}

/** Ids go to the engine beside pictures where it takes them so, no client follows the stream, and the places of all earlier pictures are known. */
function takesPictures(session: Session, call: Call, from: Call, { images }: EngineFacts): boolean {
  const earlier = imagesIn(from.messages).length;
  if (!images?.token_in || session.spec.relay === "live" || !imagesIn(call.messages).every(isStored)) return false;
  return earlier === 0 || from.outcome?.media?.length === earlier;
}

function rendererAt(engine: Engine, model: string, call: Call, media: Media | null, signal: AbortSignal): Renderer {
  const { tool_choice, effective_sampling: sampling } = call.begun;
  const render = (source: Pick<RenderSource, "messages" | "tools" | "generation" | "ids_only">) =>
    (engine.render as NonNullable<Engine["render"]>)(
      model,
      { ...source, messages: withBytes(source.messages, media), tool_choice, sampling },
      signal,
    );
  return {
    render: (messages, tools, generation) => render({ messages, tools, generation }),
    ids: async (messages, tools) => (await render({ messages, tools, generation: true, ids_only: true })).token_ids,
    tokenize: (text) => (engine.tokenize as NonNullable<Engine["tokenize"]>)(model, { text }, signal),
    detokenize: (ids) => (engine.detokenize as NonNullable<Engine["detokenize"]>)(model, ids, signal),
  };
}
