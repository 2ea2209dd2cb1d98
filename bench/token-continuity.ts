/**
 * What does token continuity cost a turn, and what does the prefix cache save?
 *
 *     node bench/token-continuity.ts                        the practice engine
 *     node bench/token-continuity.ts --engine URL           a vLLM (one with --enable-prompt-tokens-details tells its cache hits)
 *     node bench/token-continuity.ts --tokens 28000 --turns 25 --words 10
 *     node bench/token-continuity.ts --quick                a smoke test: its numbers mean nothing
 *
 * Three sessions of one proxy begin with two thirds of these tokens and grow side by side, turn by turn in changing order:
 * one is rendered anew at each turn, one goes on from its tokens, and one begins otherwise each time, so that no cache
 * holds anything of it. In one play the
 * conversation only grows; in the other the user speaks again after eight turns, and the thoughts before that are dropped.
 *
 * Told are the questions to the tokenizer before the engine is asked to sample (the suffix), the time from then to the
 * first sampled token, and the prompt tokens that the engine had to compute. Medians of the turns from half the length on;
 * in the second play of those where the user spoke.
 */
import { parseArgs } from "node:util";
import { engineNamed } from "../engines/registry.ts";
import { startPracticeEngine } from "../practice/start.ts";
import { HarnessProxy } from "../proxy/index.ts";
import { MemoryStore } from "../proxy/store/index.ts";
import { markdownTable, quantile, surroundings } from "./measure.ts";
import { GrowingSession, type Turn } from "./token-continuity/growing-session.ts";
import { WatchedEngine } from "./token-continuity/watched-engine.ts";

const { values } = parseArgs({
  options: {
    engine: { type: "string" },
    tokens: { type: "string", default: "28000" },
    turns: { type: "string", default: "25" },
    words: { type: "string", default: "10" },
    quick: { type: "boolean", default: false },
  },
});
const { tokens, turns } = values.quick ? { tokens: 240, turns: 5 } : { tokens: Number(values.tokens), turns: Number(values.turns) };

const contestants = {
  "rendered anew": { continuity: "off", isCold: false },
  continued: { continuity: "auto", isCold: false },
  "no cache": { continuity: "off", isCold: true },
} as const;
type Contestant = keyof typeof contestants;
const names = Object.keys(contestants) as Contestant[];

const plays = { "only grows": null, "drops thoughts": values.quick ? 2 : 8 } as const;

await using practice = values.engine === undefined ? await startPracticeEngine({ seed: 1 }) : null;
const watched = new WatchedEngine(engineNamed("vllm").create({ baseUrl: values.engine ?? practice?.url ?? "", apiKey: null }));
await using proxy = await HarnessProxy.start({ engine: watched.engine, store: new MemoryStore(), version: "bench" });
if (!proxy.facts.token_in) throw new Error("this engine takes no prompt ids");
/** A server that was measured before still has that run's prompts in its cache. */
const run = crypto.randomUUID();
const before = surroundings();
const opening = await linesOf((tokens * 2) / 3);
const result = await linesOf(tokens / 3 / turns);

const lines: string[][] = [];
const told: string[] = [];
for (const [play, exchange] of Object.entries(plays)) {
  const grown = await grow(play, exchange);
  const of = (name: Contestant) => grown[name].filter((turn, at) => at >= turns / 2 && (exchange === null || turn.isUsers));
  for (const name of names) lines.push([play, name, ...figures(of(name))]);
  told.push(`${play}: ${compared(of("rendered anew"), of("continued"), of("no cache"))}`);
}
const after = surroundings();
console.log(
  `machine ${before.machine}, Node ${before.node}, commit ${before.commit}, load ${before.load.toFixed(1)} before, ${after.load.toFixed(1)} after`,
);
console.log(`engine ${values.engine === undefined ? "practice" : `${proxy.facts.engine} ${proxy.facts.version}`}, ${turns} turns\n`);
const columns = ["play", "session", "prompt tokens", "computed", "suffix ms", "requests", "first token ms", "both ms", "turn ms"];
console.log(markdownTable(columns, lines).join("\n"));
console.log(`\n${told.join("\n")}`);

/** All contestants, each turn of one beside the same turn of the others. */
async function grow(play: string, exchange: number | null): Promise<Record<Contestant, Turn[]>> {
  const sessions = await Promise.all(
    names.map(async (name) => {
      const { continuity, isCold } = contestants[name];
      const { key } = await proxy.openSession({
        any_model: true,
        purpose: "eval",
        continuity,
        restore: continuity === "off" ? "serialisation" : "full",
      });
      const growth = {
        url: proxy.url,
        key,
        watched,
        name: `${name}, ${play}, of ${run}`,
        isCold,
        exchange,
        words: Number(values.words),
        opening,
      };
      return new GrowingSession(growth);
    }),
  );
  for (let turn = 0; turn < turns; turn++)
    for (const at of names.keys()) await sessions[(turn + at) % sessions.length]?.turn(`file ${turn}\n${result}`);
  return Object.fromEntries(names.map((name, at) => [name, sessions[at]?.turns ?? []])) as Record<Contestant, Turn[]>;
}

/** Lines of code of about so many tokens. */
async function linesOf(wanted: number): Promise<string> {
  const line = "export function add(first: number, second: number): number { return first + second; } // naïve\n";
  const model = proxy.facts.models[0] ?? "";
  const ofTwenty = (await watched.engine.tokenize?.(model, { text: line.repeat(20) }, AbortSignal.timeout(10_000)))?.length ?? 500;
  return line.repeat(Math.max(1, Math.round((wanted / ofTwenty) * 20)));
}

function figures(turns: Turn[]): string[] {
  const computed = turns.every((turn) => turn.computed !== null) ? String(Math.round(median(turns, (turn) => turn.computed ?? 0))) : "?";
  const milliseconds = [(turn: Turn) => turn.first, (turn: Turn) => turn.asking + turn.first, (turn: Turn) => turn.milliseconds];
  return [
    String(Math.round(median(turns, (turn) => turn.prompt))),
    computed,
    median(turns, (turn) => turn.asking).toFixed(1),
    String(median(turns, (turn) => turn.asked)),
    ...milliseconds.map((of) => median(turns, of).toFixed(0)),
  ];
}

/** What the suffix costs beside what it brings, turn by turn. */
function compared(anew: Turn[], continued: Turn[], cold: Turn[]): string {
  const beside = (others: Turn[]) => quantiles(continued.map((turn, at) => (others[at]?.first ?? 0) - turn.first));
  const suffix = median(continued, (turn) => turn.asking);
  const share = quantiles(continued.map((turn, at) => (100 * turn.asking) / (anew[at]?.milliseconds ?? 1)));
  return `the suffix costs ${suffix.toFixed(1)} ms, ${share} % of the turn rendered anew; then the first token comes ${beside(anew)} ms sooner than rendered anew, ${beside(cold)} ms sooner than without a cache`;
}

function median(turns: Turn[], of: (turn: Turn) => number): number {
  const sorted = turns.map(of).toSorted((a, b) => a - b);
  return sorted.length === 0 ? Number.NaN : quantile(sorted, 0.5);
}

function quantiles(values: number[]): string {
  const sorted = values.toSorted((a, b) => a - b);
  const [low, middle, high] = [0.25, 0.5, 0.75].map((part) => quantile(sorted, part).toFixed(1));
  return `${middle} (quartiles ${low} to ${high})`;
}
