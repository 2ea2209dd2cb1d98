/** Screen 3, second half: shows the samples of one group, and where each differs first from the reference sample. */
import type { SessionDiff } from "../diff/compare-sessions.ts";
import { groupQuery } from "../run/group-table.ts";
import type { ViewedRollout } from "../run/viewed-run.ts";
import { link, type PageLinks } from "./links.ts";
import { cutText, type Markup, markup, nothing } from "./markup.ts";
import { counted, number, rewardPill, seconds, spaced } from "./words.ts";

/** `diff`: the comparison with the reference. null: it is the reference, or was not compared. A sentence: why it cannot be compared. */
export type GroupSample = {
  rollout: ViewedRollout;
  why: string;
  diff: SessionDiff | string | null;
  /** What the sample did after it parted. For the reference: from its first turn on. null: it did nothing more, or its log was not read. */
  did: string | null;
};

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
    counted(samples.length, "sample"),
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

function card({ rollout, why, diff, did }: GroupSample, page: GroupPage): Markup {
  const { reference, links, compareWith } = page;
  const query = groupQuery(page.task_id, page.group_id);
  const { entry, id } = rollout;
  const isReference = rollout.id === reference?.id;
  const compare = isReference
    ? markup`<span class="quiet small">the others are compared with this one</span>`
    : compareWith === null
      ? nothing
      : link(compareWith(id), "compare", "small");
  return markup`<section class="${isReference ? "reference" : ""}"><h2>${link(links.rollout(id, { query }), `sample ${entry.sample_index ?? "?"}`)} ${rewardPill(entry.reward)} ${compare}</h2>
<p>${cutText(why, 300)}</p>
<p class="quiet">${number(entry.turns)} ${entry.turns === 1 ? "turn" : "turns"} · ${number(entry.sampled_tokens)} tokens · ${seconds(entry.seconds)}</p>
${parting(diff, rollout, reference, links, query)}
${deeds(diff, did, entry)}</section>`;
}

/** Says in one line what it did, or did next, and how it ended. */
function deeds(diff: SessionDiff | string | null, did: string | null, { end, state }: ViewedRollout["entry"]): Markup {
  const isParted = diff !== null && typeof diff !== "string" && diff.parting !== null;
  const words = [
    did === null ? (isParted ? "nothing more" : "") : `${isParted ? "then" : "it did"}: ${did}`,
    end === null ? spaced(state) : `ended: ${spaced(end)}`,
  ];
  return markup`<p class="deeds">${words.filter((word) => word !== "").join("; ")}</p>`;
}

/** The same calls with another reward point at the grader, not at the model. */
function sameCalls(one: number | null, other: number | null): Markup {
  if (one === other) return markup`<p>the same, call by call</p>`;
  const why = one === null || other === null ? "one of them has no reward" : "other reward";
  return markup`<p class="alert"><b>same calls, ${why}</b>: look at how both were graded</p>`;
}

function parting(
  diff: SessionDiff | string | null,
  { id, entry }: ViewedRollout,
  reference: ViewedRollout | null,
  links: PageLinks,
  query: string,
): Markup {
  if (diff === null) return nothing;
  if (typeof diff === "string") return markup`<p class="quiet">${diff}</p>`;
  if (diff.parting === null) return sameCalls(entry.reward, reference?.entry.reward ?? null);
  const { pair, where, why, a, b } = diff.parting;
  const turn = pair.turn_b;
  const place = link(turn === null ? null : links.rollout(id, { query, turn }), `turn ${turn ?? pair.turn_a ?? "?"}`);
  const lengths = where === "missing" ? null : pair[where];
  const at = lengths === null ? "" : `, at token ${number(lengths.shared)} of its ${where}`;
  const name = reference?.entry.sample_index ?? "?";
  const said = (whose: number | string, text: string | null) => markup`<b>sample ${whose}</b> ${text ?? "(nothing)"}`;
  const sides =
    a === null && b === null
      ? nothing
      : markup`<div class="difference"><del>${said(name, a)}</del><ins>${said(entry.sample_index ?? "?", b)}</ins></div>`;
  const words = why
    .replace("only A has this call", `this one ended, and sample ${name} goes on`)
    .replace("only B has this call", `sample ${name} ended, and this one goes on`)
    .replace("only in A", `only in sample ${name}`)
    .replace("only in B", "only in this one");
  return markup`<p>parts from sample ${name} at ${place}${at}: ${words}</p>${sides}`;
}
