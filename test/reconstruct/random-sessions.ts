/** Random sessions: a harness that continues, retries, forks, drifts, rewrites and spawns agents as it likes. */
import fc from "fast-check";
import type { Message } from "../../base/schema/message.ts";
import { assistant, LogBuilder, recognised, system, toolCall, user } from "../fakes/records/log-builder.ts";

export type Move = {
  /** Which earlier call is continued (modulo their number); with `again`, its own request is repeated. */
  from: number;
  how: "continue" | "again" | "fork" | "drift" | "retokenise" | "root" | "rewrite" | "bare";
  words: number[];
  identity: boolean;
  delivery: "complete" | "cut" | "none" | "unfinished" | "error";
  logprobs: "all" | "one missing" | "none";
  /** What the engine gave: `prompt` where it broke off before the first token. */
  ids: "all" | "prompt" | "none";
  grammar: boolean;
  overlap: boolean;
  agent: "main" | "helper";
};

const move: fc.Arbitrary<Move> = fc.record({
  from: fc.nat(50),
  how: fc.constantFrom("continue", "continue", "continue", "again", "fork", "drift", "retokenise", "root", "rewrite", "bare"),
  // Few words, so that calls often say the same.
  words: fc.array(fc.nat(2), { maxLength: 4 }),
  identity: fc.boolean(),
  delivery: fc.constantFrom("complete", "complete", "complete", "complete", "cut", "none", "unfinished", "error"),
  logprobs: fc.constantFrom("all", "all", "all", "one missing", "none"),
  ids: fc.constantFrom("all", "all", "all", "all", "all", "prompt", "none"),
  grammar: fc.boolean(),
  overlap: fc.boolean(),
  agent: fc.constantFrom("main", "main", "main", "helper"),
});

/** Plays the moves as a harness would. Every call that the engine finished is also in `log.exchanges`. */
export function play(moves: Move[]): LogBuilder {
  const log = new LogBuilder();
  const played: { id: string; messages: Message[]; says: Message; said: number[] }[] = [];
  for (const [at, { from, how, words, identity, delivery, logprobs, ids, grammar, overlap, agent }] of moves.entries()) {
    const text = words.map((word) => "xyz"[word]).join(" ");
    const says = assistant(text, toolCall("1", String(words.length)));
    const base = played.length === 0 ? undefined : played[from % played.length];
    const messages = base === undefined || how === "root" ? [system("s"), user(text)] : requestAfter(base, how, text);
    const named = base !== undefined && (identity || how === "retokenise") && how !== "again" && how !== "root";
    const rendered = log.prompt(messages);
    const same = base !== undefined && how === "retokenise" ? retokenised(rendered, log.prompt(base.messages).length, base.said) : null;
    const prompt = how === "drift" ? drifted(rendered, from) : (same ?? rendered);
    const sampled = ids === "prompt" ? [] : log.said(says);
    const id = log.call({
      messages,
      prompt: ids === "none" ? null : prompt,
      sampled: ids === "none" ? null : sampled,
      says,
      agent,
      request_class: agent === "main" ? "main" : "sub_agent",
      grammar,
      delivery,
      begin: 2000 + at * 10,
      finish: 2005 + at * 10 + (overlap ? 17 : 0),
      logprobs:
        logprobs === "none" || ids === "none"
          ? null
          : sampled.map((_, index) => (logprobs === "one missing" && index === 1 ? null : -(index % 3))),
      parent: named ? base.id : null,
      ...(same !== null &&
        base !== undefined && { decoded: { parent_call_id: base.id, same_text: true, parent_text: "x", child_text: "x" } }),
      restored: named && how !== "rewrite" ? [recognised(base.id, base.messages.length)] : [],
      error: delivery === "error" || ids === "prompt" ? { code: "engine_error", message: "gone", status: 500 } : null,
    });
    played.push({ id, messages, says, said: sampled });
  }
  return log;
}

function requestAfter(base: { messages: Message[]; says: Message }, how: Move["how"], text: string): Message[] {
  if (how === "again") return base.messages;
  if (how === "rewrite") return [...base.messages, assistant("rewritten"), user(text)];
  if (how === "bare") return [...base.messages, base.says];
  return [...base.messages, base.says, user(how === "fork" ? `fork ${text}` : text)];
}

/** The turn that was said last in other tokens, one more of them, closed by the same one; null where it said nothing. */
function retokenised(prompt: number[], at: number, said: number[]): number[] | null {
  if (said.length < 2) return null;
  return [
    ...prompt.slice(0, at),
    7001,
    ...said.slice(0, -1).map((id) => id + 8000),
    said.at(-1) as number,
    ...prompt.slice(at + said.length),
  ];
}

/** Another rendering of the same conversation: one token is another one. */
function drifted(prompt: number[], seed: number): number[] {
  const at = seed % prompt.length;
  return prompt.with(at, (prompt[at] as number) + 100);
}

export const moves = fc.array(move, { minLength: 1, maxLength: 25 });
