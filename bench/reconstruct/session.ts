/** Session logs as a tool loop of a coding agent leaves them, in the sizes that are asked for. */
import type { Message } from "../../base/schema/message.ts";
import type { LogEntry } from "../../base/schema/session-log.ts";
import { assistant, LogBuilder, recognised, system, toolCall, toolResult, user } from "../../test/fakes/records/log-builder.ts";

export type SessionShape = {
  calls: number;
  /** Tokens of the whole conversation, about: a fifth of it stands before the first turn. */
  tokens: number;
  /** append: every prompt continues the one before. drift: each turn comes back in other tokens, so every call is a branch. */
  kind: "append" | "drift";
};

export function sessionLog({ calls, tokens, kind }: SessionShape): LogEntry[] {
  const words = new Words();
  const log = new LogBuilder();
  const perTurn = (tokens * 0.8) / calls;
  let messages: Message[] = [system(words.take(Math.round(tokens * 0.2))), user("fix it")];
  let parent: string | null = null;
  for (let turn = 0; turn < calls; turn++) {
    const says = assistant(words.take(Math.round(perTurn * 0.3)), toolCall(`t${turn}`, `{"command":"step ${turn}"}`));
    const sampled = log.said(says);
    parent = log.call({
      messages,
      says,
      // A sample that is not what its text would be tokenised as: the next prompt parts from it at its first token.
      sampled: kind === "drift" ? sampled.with(0, 900_000 + turn) : sampled,
      logprobs: sampled.map((_, at) => -Math.abs(Math.sin(turn * 1000 + at))),
      parent,
      restored: parent === null ? [] : [recognised(parent, messages.length - 2)],
    });
    messages = [...messages, says, toolResult(`t${turn}`, words.take(Math.round(perTurn * 0.7)))];
  }
  return log.entries;
}

/** Words of a vocabulary of twenty thousand, the same ones every time. */
class Words {
  #state = 1;

  take(count: number): string {
    const words: string[] = [];
    for (let n = 0; n < count; n++) {
      this.#state = (this.#state * 48_271) % 2_147_483_647;
      words.push(`w${this.#state % 20_000}`);
    }
    return words.join(" ");
  }
}
