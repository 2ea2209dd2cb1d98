/** Screen 3, second half: shows the samples of one group, and where each differs first from the reference sample. */
import type { SessionDiff } from "../diff/compare-sessions.ts";
import { groupQuery } from "../run/group-table.ts";
import type { ViewedRollout } from "../run/viewed-run.ts";
import { link, type PageLinks } from "./links.ts";
import { cutText, type Markup, markup, nothing } from "./markup.ts";
import { number, rewardPill, seconds, spaced } from "./words.ts";

/** `diff`: the comparison with the reference. null: it is the reference, or was not compared. A sentence: why it cannot be compared. */
export type GroupSample = { rollout: ViewedRollout; why: string; diff: SessionDiff | string | null };

export type GroupPage = {
  task_id: string | null;
  group_id: string | null;
  samples: readonly GroupSample[];
  reference: ViewedRollout | null;
  /** How many samples are not compared, because there are too many. */
  left: number;
  links: PageLinks;
  /** Returns the address of this page with another reference; null in a static folder. */
  compareWith: ((id: string) => string) | null;
};

export function groupPage(page: GroupPage): Markup {
  const { task_id, group_id, samples, reference, left } = page;
  const rewards = samples.flatMap(({ rollout }) => rollout.entry.reward ?? []);
  const isFlat = rewards.length > 1 && new Set(rewards).size === 1;
  const nulls = samples.length - rewards.length;
  const facts = [
    `${samples.length} samples`,
    isFlat ? "no variance: it teaches nothing" : "",
    nulls > 0 ? `${nulls} without a reward` : "",
  ].filter((word) => word !== "");
  const against =
    reference === null
      ? ""
      : `Each is compared with sample ${reference.entry.sample_index ?? "?"}${page.compareWith === null ? "" : "; choose another by its “compare”"}.`;
  return markup`<h1>${task_id ?? ""} <small>group ${group_id ?? "–"} · ${facts.join(" · ")}</small></h1>
<p class="quiet">${against}${left > 0 ? ` ${number(left)} samples are too many to compare, and are only listed.` : ""}</p>
<div class="samples">${samples.map((sample) => card(sample, page))}</div>`;
}

function card({ rollout, why, diff }: GroupSample, page: GroupPage): Markup {
  const { reference, links, compareWith } = page;
  const query = groupQuery(page.task_id, page.group_id);
  const { entry, id } = rollout;
  const isReference = rollout.id === reference?.id;
  const compare = isReference
    ? markup`<span class="quiet">compared with</span>`
    : compareWith === null
      ? nothing
      : link(compareWith(id), "compare", "small");
  return markup`<section class="${isReference ? "reference" : ""}"><h2>${link(links.rollout(id, { query }), `sample ${entry.sample_index ?? "?"}`)} ${rewardPill(entry.reward)} ${compare}</h2>
<p>${cutText(why, 300)}</p>
<p class="quiet">${number(entry.turns)} turns · ${number(entry.sampled_tokens)} tokens · ${seconds(entry.seconds)}${entry.end === null ? "" : ` · ${spaced(entry.end)}`}</p>
${parting(diff, id, reference, links, query)}</section>`;
}

function parting(diff: SessionDiff | string | null, id: string, reference: ViewedRollout | null, links: PageLinks, query: string): Markup {
  if (diff === null) return nothing;
  if (typeof diff === "string") return markup`<p class="quiet">${diff}</p>`;
  if (diff.parting === null) return markup`<p>the same, call by call</p>`;
  const { pair, where, why, a, b } = diff.parting;
  const turn = pair.turn_b;
  const place = link(turn === null ? null : links.rollout(id, { query, turn }), `turn ${turn ?? pair.turn_a ?? "?"}`);
  const lengths = where === "missing" ? null : pair[where];
  const at = lengths === null ? "" : `, at token ${number(lengths.shared)} of its ${where}`;
  const sides =
    a === null && b === null ? nothing : markup`<div class="difference"><del>${a ?? "(nothing)"}</del><ins>${b ?? "(nothing)"}</ins></div>`;
  const name = reference?.entry.sample_index ?? "?";
  return markup`<p>parts from sample ${name} at ${place}${at}: ${why.replace("only A has", `only sample ${name} has`).replace("only B has", "only this one has")}</p>${sides}`;
}
