/**
 * The suffix rule tried on a chat template: conversations that grow by what harnesses append, rendered whole by the
 * template as the truth, and the continuation of the earlier rendering beside it.
 */

import { AlidadeError } from "../../../base/errors.ts";
import type { Message, Part, Tool } from "../../../base/schema/message.ts";
import { IdText } from "../../../base/tokens/id-text.ts";
import { startsWith } from "../../../base/tokens/prefix.ts";
import { toChatMessages, toChatTools } from "../../../engines/chat/messages.ts";
import type { Renderer } from "../../../proxy/continuity/anchor.ts";
import { keptReasoning } from "../../../proxy/continuity/kept-reasoning.ts";
import { shapeOf } from "../../../proxy/continuity/shape.ts";
import { Suffixes } from "../../../proxy/continuity/suffixes.ts";
import { ToyTokenizer } from "../../fakes/engines/toy-tokenizer.ts";
import type { Template, TemplateRenderer } from "../../interop/templates/place.ts";

/** What became of one continuation. `equal` and `kept` are right, `wrong` never is, the others are rendered anew. */
export type Verdict =
  /** The template is append-only here, and the suffix is its own. */
  | "equal"
  /** The template prints the earlier turn otherwise now (without its reasoning), and the suffix is still its own. */
  | "kept"
  | "refused"
  /** The template itself raises. */
  | "raises"
  | "wrong";

export type Trial = {
  append: string;
  variant: string;
  verdict: Verdict;
  isAppendOnly: boolean;
  dropsReasoning: boolean;
  printsReasoning: boolean;
  detail: string;
};

export const text = (words: string): Part => ({ type: "text", text: words });
export const call = (index: number, name: string, args: string): Part => ({
  type: "tool_call",
  id: `abcdefg0${index}`,
  name,
  arguments: args,
  kind: "function",
});
export const result = (index: number, words: string): Message => ({
  role: "tool",
  parts: [{ type: "tool_result", call_id: `abcdefg0${index}`, content: [text(words) as { type: "text"; text: string }], is_error: false }],
});
export const user = (words: string): Message => ({ role: "user", parts: [text(words)] });

/** The turn, with a thought before it or without. */
export function said(parts: Part[], thinks: boolean): Message {
  return { role: "assistant", parts: thinks ? [{ type: "reasoning", text: reasoning }, ...parts] : parts };
}

/** The turn as it is where no parser cuts the thought out of it. */
function saidAloud([first, ...parts]: Part[]): Message {
  const thought = `<think>\n${reasoning}\n</think>\n\n`;
  return {
    role: "assistant",
    parts: first?.type === "text" ? [text(thought + first.text), ...parts] : [text(thought), ...(first ? [first] : []), ...parts],
  };
}

const reasoning = "The zebra files must be listed first.";
const tools: Tool[] = ["list_files", "read_file"].map((name) => ({
  name,
  description: `To ${name}.`,
  parameters: { type: "object", properties: { path: { type: "string", description: "where" } }, required: ["path"] },
  kind: "function",
}));

const openings: Record<string, Message[]> = {
  plain: [user("What is in naïve 日本?")],
  system: [{ role: "system", parts: [text("Be brief.")] }, user("What is in src?")],
  "in a loop": [user("What is in src?"), { role: "assistant", parts: [call(7, "list_files", '{"path": "."}')] }, result(7, "src\ntest")],
  "a second exchange": [
    user("What is in src?"),
    { role: "assistant", parts: [call(7, "list_files", '{"path": "src"}')] },
    result(7, "a.ts"),
    { role: "assistant", parts: [text("One file.")] },
    user("And in test?"),
  ],
};

/** What a turn without calls says: its end is looked for behind it. */
export const answered = "There are two files.";
const turns: Record<string, Part[]> = {
  call: [call(0, "list_files", '{"path": "src/日本"}')],
  "text and call": [text("I look."), call(0, "read_file", '{"path":"a","limit":2}')],
  "two calls": [call(0, "list_files", '{"path": "src"}'), call(1, "read_file", '{"path": "b"}')],
  answer: [text(answered)],
};

const listing = 'a.txt\n\n  {"b": [1, 2]}\n日本 <b>\n';
const appends: Record<string, { messages: Message[]; calls: number }> = {
  T: { messages: [result(0, listing)], calls: 1 },
  TT: { messages: [result(0, listing), result(1, "empty")], calls: 2 },
  "TT out of order": { messages: [result(1, "empty"), result(0, listing)], calls: 2 },
  TV: { messages: [result(0, listing), user("Go on.")], calls: 1 },
  V: { messages: [user("Thanks. And now?\n")], calls: 0 },
};

/** What is tried: the conversation, the turn that was sampled, and what follows it. */
export type Continuation = { before: Message[]; turn: Message; appended: Message[] };

/** Tries continuations on a template, with one memory of its suffixes, as a proxy has it. */
export function trialsOf(
  template: Template,
  renderer: TemplateRenderer,
): (one: Continuation) => Promise<Omit<Trial, "append" | "variant">> {
  const tokenizer = new ToyTokenizer();
  const suffixes = new Suffixes();
  const at = rendererOf(template, renderer, tokenizer);
  return (one) => tryOne(at, tokenizer, suffixes, one);
}

/** Everything that this template makes of our conversations. */
export async function tryTemplate(template: Template, renderer: TemplateRenderer): Promise<Trial[]> {
  const trials: Trial[] = [];
  const trial = trialsOf(template, renderer);
  for (const [openingName, opening] of Object.entries(openings))
    for (const [turnName, parts] of Object.entries(turns))
      for (const [append, { messages, calls }] of Object.entries(appends)) {
        if (parts.filter(({ type }) => type === "tool_call").length !== calls) continue;
        for (const thought of ["", ", reasoning", ", a thought in the text"]) {
          const turn = thought === ", a thought in the text" ? saidAloud(parts) : said(parts, thought !== "");
          const variant = `${openingName}, ${turnName}${thought}`;
          trials.push({ append, variant, ...(await trial({ before: opening, turn, appended: messages })) });
        }
      }
  return trials;
}

async function tryOne(at: Renderer, tokenizer: ToyTokenizer, suffixes: Suffixes, { before, turn, appended }: Continuation) {
  const whole = [...before, turn, ...appended];
  let alone: string;
  let truth: string;
  try {
    alone = (await at.render([...before, turn], tools, false)).text;
    truth = (await at.render(whole, tools, true)).text;
  } catch (error) {
    return {
      verdict: "raises" as const,
      isAppendOnly: false,
      dropsReasoning: false,
      printsReasoning: false,
      detail: String(error).slice(0, 200),
    };
  }
  // A template that raises on the question is not believed: the call is rendered anew.
  const kept = await keptReasoning(at, whole, true, (_, find) => find()).catch(() => null);
  const dropsReasoning = alone.includes(reasoning) && !truth.includes(reasoning);
  const facts = { isAppendOnly: false, dropsReasoning, printsReasoning: alone.includes(reasoning), detail: "" };
  if (kept !== null && alone.includes(reasoning) && kept.has(before.length) === dropsReasoning)
    return {
      ...facts,
      verdict: "wrong" as const,
      detail: "the template was believed to keep reasoning that it drops, or the other way round",
    };
  let verdict: Verdict = "refused";
  for (const sampled of endings(tokenizer, alone, truth)) {
    const close = sampled.at(-1) as number;
    const shape = shapeOf(before, turn, appended, true);
    const suffix = await suffixes
      .suffixOf({ renderer: at, kind: "", shape, turn, appended, tools, toolsHash: "", close, kept: IdText.of(sampled) })
      .catch(() => "no_suffix" as const);
    const true_ids = tokenizer.encode(truth);
    const isAppendOnly = startsWith(true_ids, sampled);
    facts.isAppendOnly ||= isAppendOnly;
    if (typeof suffix === "string") continue;
    const detail = `${JSON.stringify(tokenizer.decode(sampled).slice(-120))} then ${JSON.stringify(tokenizer.decode(suffix))}, truth ${JSON.stringify(truth.slice(-400))}`;
    if (
      isAppendOnly
        ? tokenizer.decode(true_ids.slice(sampled.length)) !== tokenizer.decode(suffix)
        : !isOnlyThoughts(tokenizer.decode(sampled) + tokenizer.decode(suffix), truth)
    )
      return { ...facts, verdict: "wrong" as const, detail };
    verdict = isAppendOnly ? "equal" : "kept";
  }
  return { ...facts, verdict };
}

/** Prompt and sample as the model may have ended them: with the last special token of the turn, or with the next turn's first. */
function* endings(tokenizer: ToyTokenizer, alone: string, truth: string): Generator<number[]> {
  const ids = tokenizer.encode(alone);
  const last = ids.findLastIndex((id) => tokenizer.isSpecial(id));
  if (last !== -1 && tokenizer.decode(ids.slice(last + 1)).trim() === "") yield ids.slice(0, last + 1);
  const before = ids.slice(0, last).findLastIndex((id) => tokenizer.isSpecial(id));
  // Some templates print the end of the text behind a last turn.
  if (before !== -1 && tokenizer.decode(ids.slice(before + 1, last)).trim() === "") yield ids.slice(0, before + 1);
  const answer = truth.lastIndexOf(answered);
  const behind = answer === -1 ? undefined : tokenizer.encode(truth.slice(answer + answered.length))[0];
  if (behind !== undefined && alone.endsWith(answered) && tokenizer.isSpecial(behind)) yield [...ids, behind];
  const next = truth.startsWith(alone) ? tokenizer.encode(truth.slice(alone.length))[0] : undefined;
  if (next !== undefined && tokenizer.isSpecial(next)) yield [...ids, next];
}

/** Do the two say the same but for reasoning, its tags and white space? */
function isOnlyThoughts(continued: string, truth: string): boolean {
  return withoutThoughts(continued) === withoutThoughts(truth) || isOneMessageMore(continued, truth);
}

/** There are templates that print reasoning as a message of its own. */
function isOneMessageMore(continued: string, truth: string): boolean {
  let start = 0;
  while (start < truth.length && continued[start] === truth[start]) start++;
  const more = continued.slice(start, start + continued.length - truth.length);
  const isInserted = truth === continued.slice(0, start) + continued.slice(start + more.length);
  return (
    isInserted &&
    more
      .replace(reasoning, "")
      .replace(/<?[^<>\s]*>|<[^<>\s]*|assistant/g, "")
      .trim() === ""
  );
}

const withoutThoughts = (words: string): string =>
  words.replaceAll(reasoning, "").replace(/<\|channel>thought|<channel\|>|<[^<>\s]*think[^<>\s]*>|\[\/?THINK\]|\s/gi, "");

function rendererOf(template: Template, renderer: TemplateRenderer, tokenizer: ToyTokenizer): Renderer {
  const known = new Map<string, Promise<{ text: string; token_ids: number[] }>>();
  return {
    render(messages, list, generation) {
      const key = JSON.stringify([messages, list, generation]);
      const rendered = known.get(key) ?? render(messages, list, generation);
      known.set(key, rendered);
      return rendered;
    },
    async ids(messages, list) {
      return (await this.render(messages, list, true)).token_ids;
    },
    tokenize: async (words) => tokenizer.encode(words),
    detokenize: async (ids) => tokenizer.decode(ids),
  };

  async function render(messages: Message[], list: Tool[], generation: boolean) {
    // As vLLM gives them to a template: arguments parsed, and reasoning under both of its names.
    const wire = toChatMessages(messages).map((message) => ({
      ...message,
      ...(message.reasoning === undefined ? {} : { reasoning_content: message.reasoning }),
      ...(message.content === null ? { content: "" } : {}),
      ...(Array.isArray(message.tool_calls)
        ? {
            tool_calls: message.tool_calls.map((one: { function: { arguments: string } }) => ({
              ...one,
              function: { ...one.function, arguments: JSON.parse(one.function.arguments) },
            })),
          }
        : {}),
    }));
    const rendering = { messages: wire, tools: list.length > 0 ? toChatTools(list) : null, generation };
    // As a server answers what its template raises.
    const said = await renderer.render(template, rendering).catch((error: Error) => {
      throw new AlidadeError("request_invalid", error.message);
    });
    return { text: said, token_ids: tokenizer.encode(said) };
  }
}
