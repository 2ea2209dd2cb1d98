/**
 * What does a group of leaves cost as a tree? Compares it with as many chains of the same task, with the same seed.
 *
 *     node bench/trees.ts                                the practice engine: 4 groups of 8 leaves, 8 turns each
 *     node bench/trees.ts --engine URL                   a vLLM with a hermes tool parser and token-in
 *     node bench/trees.ts --tasks 1 --turns 4 --policy at_turns --json
 *
 * Exits with 1 in each of these cases: a tree samples more than `--bound` × the chains' tokens; the weights of a sampled token
 * do not add up to 1 over all exported rows; a fork was not sampled on the recorded ids; a rollout failed.
 */
import { parseArgs } from "node:util";
import { startPracticeEngine } from "../practice/start.ts";
import { markdownTable, numbersOf, surroundings } from "./measure.ts";
import type { GroupFigures } from "./trees/group-of-leaves.ts";
import { treesAgainstChains } from "./trees/tree-against-chains.ts";

const { values } = parseArgs({
  options: {
    engine: { type: "string" },
    policy: { type: "string", default: "uniform,at_turns" },
    tasks: { type: "string", default: "4" },
    turns: { type: "string", default: "8" },
    leaves: { type: "string", default: "8" },
    samples: { type: "string", default: "2" },
    seed: { type: "string", default: "1" },
    "at-once": { type: "string", default: "4" },
    bound: { type: "string", default: "0.65" },
    json: { type: "boolean", default: false },
  },
});
const { "at-once": atOnce, ...numbers } = numbersOf(values, "tasks", "turns", "leaves", "samples", "seed", "at-once", "bound");
const { engine: url } = values;
const before = surroundings();
const found = await treesAgainstChains(
  {
    ...numbers,
    atOnce,
    policies: values.policy.split(","),
    engine: () => (url === undefined ? startPracticeEngine({ seed: 1 }) : Promise.resolve({ url, async [Symbol.asyncDispose]() {} })),
  },
  AbortSignal.timeout(3_600_000),
);
const after = surroundings();
if (values.json) console.log(JSON.stringify({ before, after, options: values, ...found }));
else {
  console.log(
    `machine ${before.machine}, Node ${before.node}, commit ${before.commit}, load ${before.load.toFixed(1)} before, ${after.load.toFixed(1)} after`,
  );
  console.log(
    `engine ${url === undefined ? "practice" : `vLLM at ${url}`}, ${values.tasks} groups of ${values.leaves}, ${values.turns} turns\n`,
  );
  const columns = ["", "rollouts", "forks", "calls", "sampled tokens", "×", "seconds", "×", "rows", "tokens by the sum of their weights"];
  console.log(
    markdownTable(columns, [lineOf("chains", found.chains, null), ...found.trees.map((one) => lineOf(one.policy, one.figures, one))]).join(
      "\n",
    ),
  );
  for (const one of found.broken) console.error(one);
}
process.exitCode = found.broken.length === 0 ? 0 : 1;

/** Shows no ratio of seconds with `--engine`: the chains fill the engine's cache before the trees run. */
function lineOf(name: string, figures: GroupFigures, ratios: { ratio: number; wall_ratio: number } | null): string[] {
  const { leaves, forks, calls, sampled_tokens, seconds, rows, tokens_by_weight } = figures;
  const shown = (ratio: number | undefined): string => ratio?.toFixed(3) ?? "";
  const weights = Object.entries(tokens_by_weight).map(([weight, tokens]) => `${weight}: ${tokens}`);
  return [
    ...[name, String(leaves), String(forks), String(calls), String(sampled_tokens), shown(ratios?.ratio)],
    ...[seconds.toFixed(1), shown(url === undefined ? ratios?.wall_ratio : undefined), String(rows), weights.join(", ")],
  ];
}
