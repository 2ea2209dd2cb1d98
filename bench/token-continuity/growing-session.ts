import type { WatchedEngine } from "./watched-engine.ts";

type Message = Record<string, unknown> & { role: string; tool_calls?: { id: string }[] };

export type Turn = {
  milliseconds: number;
  /** Before the engine was asked to sample: the questions to its tokenizer. */
  asking: number;
  asked: number;
  /** From then to the first sampled token. */
  first: number;
  prompt: number;
  /** Prompt tokens that were in no cache; null where the engine does not say. */
  computed: number | null;
  sampled: number;
  /** What was appended were words of the user, and no result. */
  isUsers: boolean;
};

export type Growth = {
  url: string;
  key: string;
  watched: WatchedEngine;
  /** Sessions begin differently, or one would find the other's prefixes in the cache. */
  name: string;
  /** Its prompts begin differently each time, so that no cache holds anything of them. */
  isCold: boolean;
  /** After so many turns the user speaks again, and the thoughts of all turns before are dropped. Null: never. */
  exchange: number | null;
  words: number;
  /** What the user says first. */
  opening: string;
};

const tools = [
  { type: "function", function: { name: "bash", parameters: { type: "object", properties: { command: { type: "string" } } } } },
];

/** A session that grows turn by turn, each of them a thought and a call as a grammar lets the model say them. */
export class GrowingSession {
  readonly turns: Turn[] = [];
  readonly #growth: Growth;
  readonly #messages: Message[];
  readonly #said: string;

  constructor(growth: Growth) {
    this.#growth = growth;
    this.#messages = [{ role: "user", content: growth.opening }];
    const files = Array.from({ length: growth.words }, (_, index) => `src/${index}.ts`).join(" ");
    this.#said = `<think>\nI look at the next one.\n</think>\n\n<tool_call>\n{"name": "bash", "arguments": {"command":  "cat ${files}"}}\n</tool_call>`;
  }

  /** One turn, and its result. */
  async turn(result: string): Promise<void> {
    const { url, key, watched, exchange } = this.#growth;
    const isUsers = exchange !== null && this.turns.length > 0 && this.turns.length % exchange === 0;
    if (isUsers) this.#askAgain();
    const watch = watched.start();
    const began = performance.now();
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({
        model: "any",
        messages: [this.#instructions(), ...this.#messages],
        tools,
        max_tokens: 2_000,
        structured_outputs: { choice: [this.#said] },
      }),
    });
    const body = (await response.json()) as {
      choices?: { message: Message }[];
      usage?: { prompt_tokens: number; completion_tokens: number; prompt_tokens_details?: { cached_tokens?: number } | null };
    };
    const said = body.choices?.[0]?.message;
    if (!said?.tool_calls) throw new Error(JSON.stringify(body));
    const cached = body.usage?.prompt_tokens_details?.cached_tokens;
    const prompt = body.usage?.prompt_tokens ?? 0;
    this.turns.push({
      milliseconds: performance.now() - began,
      ...watch,
      prompt,
      computed: cached === undefined ? null : prompt - cached,
      sampled: body.usage?.completion_tokens ?? 0,
      isUsers,
    });
    this.#messages.push(said, ...said.tool_calls.map(({ id }) => ({ role: "tool", tool_call_id: id, content: result })));
  }

  /** As Qwen3's template has it, and harnesses do: what was thought before the user's last words is gone. */
  #askAgain(): void {
    this.#messages.push({ role: "user", content: "And the next?" });
    for (const message of this.#messages) {
      delete message.reasoning;
      delete message.reasoning_content;
    }
  }

  #instructions(): Message {
    const { name, isCold } = this.#growth;
    return { role: "system", content: `${isCold ? `${this.turns.length}. ` : ""}You look for a bug. Your prompts are ${name}.` };
  }
}
