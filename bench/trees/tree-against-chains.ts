/** Runs the same tasks with the same seed, once as chains and once as trees for each policy. Checks the results. */
import { Branching } from "../../base/schema/branching.ts";
import { type GroupFigures, type GroupOptions, runGroups } from "./group-of-leaves.ts";

export type Against = { policy: string; figures: GroupFigures; ratio: number; wall_ratio: number };

export type TreesAgainstChains = { chains: GroupFigures; trees: Against[]; broken: string[] };

/** `engine`: returns an engine for one run, with nothing of these tasks in its cache. It is disposed after that run. */
export type TreesOptions = Omit<GroupOptions, "engine" | "branching"> & {
  policies: readonly string[];
  /** Largest allowed ratio of a tree's sampled tokens to the chains' sampled tokens. */
  bound: number;
  engine(): Promise<{ url: string } & AsyncDisposable>;
};

export async function treesAgainstChains(options: TreesOptions, signal: AbortSignal): Promise<TreesAgainstChains> {
  const run = async (branching: Branching | null): Promise<GroupFigures> => {
    await using engine = await options.engine();
    return await runGroups({ ...options, engine: engine.url, branching }, signal);
  };
  const chains = await run(null);
  const trees: Against[] = [];
  for (const policy of options.policies) {
    const figures = await run(branchingOf(policy, options));
    const ratio = figures.sampled_tokens / chains.sampled_tokens;
    trees.push({ policy, figures, ratio, wall_ratio: figures.seconds / chains.seconds });
  }
  const wanted = options.leaves * options.tasks;
  const broken = [
    ...brokenOf("chains", chains, wanted),
    ...trees.flatMap(({ policy, figures, ratio }) => [
      ...brokenOf(policy, figures, wanted),
      ...(ratio <= options.bound ? [] : [`${policy}: ${ratio.toFixed(3)} × the sampled tokens, more than ${options.bound}`]),
    ]),
  ];
  return { chains, trees, broken };
}

/** Makes `at_turns` fork after the two turns in the middle. */
function branchingOf(policy: string, { leaves, turns }: Pick<TreesOptions, "leaves" | "turns">): Branching {
  const middle = Math.ceil(turns / 2);
  if (policy === "at_turns") return Branching.parse({ policy, leaves, width: leaves, depth: 1, turns: [middle, middle + 1] });
  return Branching.parse({ policy, leaves, width: 2, depth: 2 });
}

/** Describes each requirement that these rollouts do not meet. */
export function brokenOf(name: string, figures: GroupFigures, wanted: number): string[] {
  const { leaves, failed, reasons, rendered_forks, sampled_tokens, tokens_by_weight, strange_tokens } = figures;
  const once = tokens_by_weight["1"] ?? 0;
  return [
    leaves === wanted ? null : `${leaves} rollouts instead of ${wanted}`,
    failed === 0 ? null : `${failed} rollouts without the reward 1 (${reasons.slice(0, 3).join("; ")})`,
    rendered_forks === 0 ? null : `${rendered_forks} forks that were not sampled on the recorded ids`,
    once === sampled_tokens && Object.keys(tokens_by_weight).length === 1 && strange_tokens === 0
      ? null
      : `of ${sampled_tokens} sampled tokens ${once} have the weight 1 (by weight: ${JSON.stringify(tokens_by_weight)}; not sampled: ${strange_tokens})`,
  ].flatMap((why) => (why === null ? [] : [`${name}: ${why}`]));
}
