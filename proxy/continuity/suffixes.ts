/**
 * What follows a sampled turn, in the engine's own tokens. Where a turn of a shape is closed is found once; afterwards
 * one rendering of the small conversation with the real appended messages gives their suffix, and that it begins as the
 * first one did is checked in each.
 */
import { AlidadeError } from "../../base/errors.ts";
import { type Message, type Tool, toolCallsOf } from "../../base/schema/message.ts";
import type { IdText } from "../../base/tokens/id-text.ts";
import { startsWith } from "../../base/tokens/prefix.ts";
import { type Anchor, type Close, findAnchor, type NoAnchor, type Renderer } from "./anchor.ts";
import type { Remember } from "./kept-reasoning.ts";
import { dummyAppended, dummyConversation, dummyTools, type Past, printsIds, type Shape, withDummyIds } from "./shape.ts";

/** Templates and tool names of a long-lived proxy come and go; an answer is some hundred ids. */
const answersKept = 2_000;

export type SuffixRequest = {
  renderer: Renderer;
  /** Template, tokenizer and the template's inputs: answers hold for equal ones. */
  kind: string;
  shape: Shape;
  turn: Message;
  appended: Message[];
  tools: Tool[];
  toolsHash: string | null;
  close: Close;
  /** Tokens of the earlier call, its prompt and its sample. */
  kept: IdText;
};

/** `ids`: the template prints call ids, so that each turn needs an anchor of its own. */
type FoundShape = { type: "head" | "ids"; head: number[]; closing: number[]; where: Where } | NoAnchor;
type Where = "arguments" | "text";

export class Suffixes {
  readonly #answers = new Map<string, Promise<unknown>>();

  /** Token ids that follow the turn's last sampled token. Throws where the engine does not answer. */
  async suffixOf(request: SuffixRequest): Promise<number[] | NoAnchor> {
    const { renderer, kind, shape, turn, appended, toolsHash, close, kept } = request;
    const found = await this.#remembered(["shape", kind, shape, close], () => findShape(request));
    if (typeof found === "string") return found;
    if (!endsWith(kept, found.closing, close)) return "other_close";
    if (
      shape.hasTools &&
      !(await this.#remembered(["tools", kind, toolsHash, shape.calls.length > 0, shape.appended, close], () =>
        isSameWithTools(request, found.where),
      ))
    )
      return "no_suffix";
    if (found.type === "head") {
      const conversation = [...dummyConversation(shape, found.where), ...withDummyIds(turn, appended)];
      const token_ids = await renderer.ids(conversation, dummyTools(shape));
      if (startsWith(token_ids, found.head)) return token_ids.slice(found.head.length);
    }
    // The ids matter, or an appended message changes how the turn before it is printed: the probe uses the real messages.
    const ids = toolCallsOf(turn).map(({ id }) => id);
    const anchor = await findAnchor(renderer, {
      conversation: dummyConversation(shape, found.where, { ids }),
      appended,
      tools: dummyTools(shape),
      close,
    });
    if (typeof anchor === "string") return anchor;
    return endsWith(kept, anchor.closing, close) ? anchor.suffix : "other_close";
  }

  /** Does the tokenizer's route print what the engine samples on, for these settings and tools? */
  isAsSampled(kind: string, toolsHash: string | null, find: () => Promise<boolean>): Promise<boolean> {
    return this.#remembered(["as sampled", kind, toolsHash], find);
  }

  /** Remembers what the template does with reasoning. */
  reasoningMemory(kind: string, hasTools: boolean): Remember {
    return (build, find) => this.#remembered(["reasoning", kind, hasTools, build], find);
  }

  /** The answer, found once however many ask for it at a time; a failure is not kept. */
  #remembered<T>(question: unknown[], find: () => Promise<T>): Promise<T> {
    const key = JSON.stringify(question);
    const known = this.#answers.get(key) as Promise<T> | undefined;
    // The first caller may have left; its abort must not reach the others.
    if (known) return known.catch(() => this.#remembered(question, find));
    const answer = find();
    this.#answers.set(key, answer);
    answer.catch(() => this.#answers.delete(key));
    if (this.#answers.size > answersKept) this.#answers.delete(this.#answers.keys().next().value as string);
    return answer;
  }
}

/** The mark stands in a call's arguments where there is a call, else, or where they are not printed, in the text. */
async function findShape({ renderer, shape, close }: SuffixRequest): Promise<FoundShape> {
  let refused: NoAnchor = "no_suffix";
  for (const where of shape.calls.length > 0 ? (["arguments", "text"] as const) : (["text"] as const)) {
    const place = { shape, where, tools: dummyTools(shape), close };
    const anchor = await anchorOf(renderer, place);
    if (typeof anchor !== "string" && !(await isSameAfterAny(anchor, renderer, place))) return "no_suffix";
    if (typeof anchor !== "string")
      return { type: printsIds(shape, anchor.text) ? "ids" : "head", head: anchor.head, closing: anchor.closing, where };
    refused = anchor;
  }
  return refused;
}

/** Whether the template prints the same behind a turn with other tools. */
async function isSameWithTools({ renderer, shape, tools, close }: SuffixRequest, where: Where): Promise<boolean> {
  const [small, real] = [
    await anchorOf(renderer, { shape, where, tools: dummyTools(shape), close }),
    await anchorOf(renderer, { shape, where, tools, close }),
  ];
  return typeof small !== "string" && typeof real !== "string" && small.suffix.join() === real.suffix.join();
}

/** Whether the template prints the same behind a turn after another past. Some templates number calls or results. */
async function isSameAfterAny(anchor: Anchor, renderer: Renderer, place: AnchorPlace): Promise<boolean> {
  const pasts = ["talk", "loop", "exchanges"] as const;
  // Some templates number the pictures.
  for (const past of showsPicture(place.shape) ? [...pasts, "pictures" as const] : pasts) {
    // What the template refuses to render was never rendered before a turn either.
    const other = await anchorOf(renderer, place, past).catch((error: unknown) => {
      if (wasRefused(error)) return null;
      throw error;
    });
    if (other !== null && (typeof other === "string" || other.suffix.join() !== anchor.suffix.join())) return false;
  }
  return true;
}

function showsPicture({ appended }: Shape): boolean {
  return appended.some((form) => form.includes("~"));
}

/** The engine understood the question and does not render that. */
export function wasRefused(error: unknown): boolean {
  return error instanceof AlidadeError && error.status >= 400 && error.status < 500 && error.status !== 429;
}

type AnchorPlace = { shape: Shape; where: Where; tools: Tool[]; close: Close };

function anchorOf(renderer: Renderer, { shape, where, tools, close }: AnchorPlace, past: Past = "none"): Promise<Anchor | NoAnchor> {
  return findAnchor(renderer, {
    conversation: dummyConversation(shape, where, { past }),
    appended: dummyAppended(shape),
    tools,
    close,
  });
}

/** Was the turn sampled to its end as the template prints it there? */
function endsWith(kept: IdText, closing: number[], close: Close): boolean {
  if (close === null) return true;
  const end = [...closing, close];
  return kept.tail(end.length).join() === end.join();
}
