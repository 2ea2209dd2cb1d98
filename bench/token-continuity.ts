/**
 * What does token continuity cost a turn, and what does it save?
 *
 *     node bench/token-continuity.ts                        the practice engine
 *     node bench/token-continuity.ts --engine URL           a vLLM (one with --enable-prompt-tokens-details tells its cache hits)
 *     node bench/token-continuity.ts --tokens 30000 --turns 20 --words 60
 *
 * Two sessions of one proxy grow side by side to the given number of prompt tokens, turn by turn in changing order: one
 * is rendered anew at each turn, the other goes on from its tokens. Told are the time of a turn, the part of it that the
 * suffix takes (everything that is asked of the tokenizer before the engine is asked to sample), and the prompt tokens
 * that the engine had to compute.
 */
import { parseArgs } from "node:util";
import { type Engine, engineNamed } from "../engines/index.ts";
import { startPracticeEngine } from "../engines/practice/start.ts";
import { HarnessProxy } from "../proxy/index.ts";
import { MemoryStore } from "../store/index.ts";
import { quantile, surroundings } from "./measure.ts";

const { values } = parseArgs({
  options: {
    engine: { type: "string" },
    tokens: { type: "string", default: "30000" },
    turns: { type: "string", default: "20" },
    words: { type: "string", default: "60" },
  },
});
const turns = Number(values.turns);

type Message = Record<string, unknown> & { role: string; tool_calls?: { id: string }[] };
type Turn = { milliseconds: number; suffix: number; asked: number; computed: number | null; prompt: number; sampled: number };

const tools = [
  { type: "function", function: { name: "bash", parameters: { type: "object", properties: { command: { type: "string" } } } } },
];

/** Both sessions say the same, token for token as chance has it: a thought and a call, as agents do. */
function play(result: string): string {
  const words = Array.from({ length: Number(values.words) }, (_, index) => `src/${index}.ts`).join(" ");
  const args = `{"command":  "cat ${words} # ${result.slice(0, 8).trim()}"}`;
  return `<think>\nI look at the next one.\n</think>\n\n<tool_call>\n{"name": "bash", "arguments": ${args}}\n</tool_call>`;
}

/** Delegates to the engine and adds up how long its tokenizer was asked. */
class Watched {
  milliseconds = 0;
  asked = 0;
  readonly engine: Engine;

  constructor(engine: Engine) {
    const timed =
      <A extends unknown[], R>(ask: (...args: A) => Promise<R>) =>
      async (...args: A): Promise<R> => {
        const began = performance.now();
        this.asked++;
        try {
          return await ask(...args);
        } finally {
          this.milliseconds += performance.now() - began;
        }
      };
    this.engine = {
      name: engine.name,
      baseUrl: engine.baseUrl,
      probe: (signal) => engine.probe(signal),
      sample: (request, signal) => engine.sample(request, signal),
      ...(engine.render && { render: timed(engine.render.bind(engine)) }),
      ...(engine.tokenize && { tokenize: timed(engine.tokenize.bind(engine)) }),
      ...(engine.detokenize && { detokenize: timed(engine.detokenize.bind(engine)) }),
      close: () => engine.close(),
    };
  }
}

/** One growing session. */
class Growing {
  readonly messages: Message[];
  readonly turns: Turn[] = [];
  readonly #url: string;
  readonly #key: string;
  readonly #watched: Watched;

  /** Sessions begin differently, or one would find the other's prefixes in the cache. */
  constructor(name: string, url: string, key: string, watched: Watched) {
    this.messages = [
      { role: "system", content: `You look for a bug. Your prompts are ${name}.` },
      { role: "user", content: "Find it." },
    ];
    this.#url = url;
    this.#key = key;
    this.#watched = watched;
  }

  async turn(result: string): Promise<void> {
    const [spent, asked] = [this.#watched.milliseconds, this.#watched.asked];
    const began = performance.now();
    const response = await fetch(`${this.#url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${this.#key}`, "content-type": "application/json" },
      body: JSON.stringify({
        model: "any",
        messages: this.messages,
        tools,
        max_tokens: 2_000,
        structured_outputs: { choice: [play(result)] },
      }),
    });
    const body = (await response.json()) as {
      choices?: { message: Message }[];
      usage?: { prompt_tokens: number; completion_tokens: number; prompt_tokens_details?: { cached_tokens?: number } | null };
    };
    const said = body.choices?.[0]?.message;
    if (!said) throw new Error(JSON.stringify(body));
    const cached = body.usage?.prompt_tokens_details?.cached_tokens;
    const prompt = body.usage?.prompt_tokens ?? 0;
    this.turns.push({
      milliseconds: performance.now() - began,
      suffix: this.#watched.milliseconds - spent,
      asked: this.#watched.asked - asked,
      computed: cached === undefined ? null : prompt - cached,
      prompt,
      sampled: body.usage?.completion_tokens ?? 0,
    });
    this.messages.push(said);
    const results = (said.tool_calls ?? []).map(({ id }) => ({ role: "tool", tool_call_id: id, content: result }));
    this.messages.push(...(results.length > 0 ? results : [{ role: "user", content: result }]));
  }
}

await using practice = values.engine === undefined ? await startPracticeEngine({ seed: 1 }) : null;
const watched = new Watched(engineNamed("vllm").create({ baseUrl: values.engine ?? practice?.url ?? "", apiKey: null }));
await using proxy = await HarnessProxy.start({ engine: watched.engine, store: new MemoryStore(), version: "bench" });
if (!proxy.facts.token_in) throw new Error("this engine takes no prompt ids");

const before = surroundings();
const sessions: Record<string, Growing> = {};
for (const [name, continuity] of [
  ["rendered anew", "off"],
  ["continued", "auto"],
] as const) {
  // A call whose sample is a call: what is appended is a result, as in a harness.
  const { key } = await proxy.openSession({ purpose: "eval", continuity, restore: "full" });
  sessions[name] = new Growing(name, proxy.url, key, watched);
}
const line = "export function add(first: number, second: number): number { return first + second; } // naïve\n";
const perLine =
  (await watched.engine.tokenize?.(proxy.facts.models[0] ?? "", { text: line.repeat(20) }, AbortSignal.timeout(10_000)))?.length ?? 500;
const result = (turn: number): string =>
  `file ${turn}\n${line.repeat(Math.max(1, Math.round((Number(values.tokens) / turns / perLine) * 20)))}`;
for (let turn = 0; turn < turns; turn++) {
  const order = Object.values(sessions);
  for (const session of turn % 2 === 0 ? order : order.toReversed()) await session.turn(result(turn));
}

const half = (session: Growing): Turn[] => session.turns.slice(Math.floor(turns / 2));
const median = (turns: Turn[], of: (turn: Turn) => number): number =>
  quantile(
    turns.map(of).toSorted((a, b) => a - b),
    0.5,
  );
console.log(
  `machine ${before.machine}, Node ${before.node}, commit ${before.commit}, load ${before.load.toFixed(1)} before, ${surroundings().load.toFixed(1)} after`,
);
console.log(
  `engine ${values.engine ?? "practice"}, ${turns} turns to ${sessions.continued?.turns.at(-1)?.prompt} prompt tokens, ${values.words} words in each call; medians of the second half\n`,
);
console.log(
  "| | ms a turn | of it for the suffix | requests for it | prompt tokens computed | tokens sampled |\n| --- | --- | --- | --- | --- | --- |",
);
for (const [name, session] of Object.entries(sessions)) {
  const turns = half(session);
  const computed = turns.every((turn) => turn.computed !== null) ? String(Math.round(median(turns, (turn) => turn.computed ?? 0))) : "?";
  console.log(
    `| ${name} | ${median(turns, (turn) => turn.milliseconds).toFixed(1)} | ${median(turns, (turn) => turn.suffix).toFixed(1)} | ${median(turns, (turn) => turn.asked)} | ${computed} | ${median(turns, (turn) => turn.sampled)} |`,
  );
}
const [anew, continued] = [sessions["rendered anew"], sessions.continued].map((session) => half(session as Growing)) as [Turn[], Turn[]];
const ratios = continued.map((turn, index) => turn.milliseconds / (anew[index] as Turn).milliseconds).toSorted((a, b) => a - b);
console.log(
  `\na continued turn takes ${quantile(ratios, 0.5).toFixed(2)} × the time of the same turn rendered anew (${ratios[0]?.toFixed(2)} to ${ratios.at(-1)?.toFixed(2)})`,
);
