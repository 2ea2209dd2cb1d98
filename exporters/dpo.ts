/**
 * Preference pairs: two rollouts of one prompt, the better and the worse, as whole conversations. Tool results stand in
 * them too; `weight` says which turns are the policy's, for a trainer that can leave the others out of its loss.
 */
import { defineExporter } from "./exporter.ts";
import { pairFacts, pairOptions, pairsOf } from "./shapes/preference-pairs.ts";

export const dpo = defineExporter({
  name: "dpo",
  title: "preference pairs of whole conversations: prompt, chosen, rejected, rewards",
  objective: "sft",
  extension: "jsonl",
  selects: false,
  wholeGroups: true,
  docs: {
    alignment: "none",
    rows: "One line a pair. A group with equal rewards has no pairs, and neither have rollouts with different first prompts. A fork is compared with the rollout that it forks from the first turn that they do not share. A compacted rollout gives its conversation before the compaction.",
    loader: null,
    proof: { how: "fields", by: "documented fields" },
  },
  options: pairOptions,
  async *write(source, options, report) {
    for await (const group of source.groups())
      for await (const pair of pairsOf(group, options, report)) {
        report.rows++;
        const { chosen, rejected } = pair;
        yield JSON.stringify({
          prompt: chosen.prompt,
          chosen: chosen.messages,
          rejected: rejected.messages,
          tools: chosen.tools,
          ...pairFacts(pair),
        });
      }
  },
});
