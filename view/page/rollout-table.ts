/** Shows a page of rollouts, one line each. */
import { isOpen } from "../run/entries.ts";
import { type ListQuery, writeListQuery } from "../run/query.ts";
import type { ViewedRollout } from "../run/viewed-run.ts";
import { link, type PageLinks } from "./links.ts";
import { type Markup, markup, nothing } from "./markup.ts";
import { figure, number, rewardPill, seconds, spaced } from "./words.ts";

/** Rollouts on one page. */
const rowsOfList = 100;

export type ListedRollouts = {
  query: ListQuery;
  /** All rollouts that the filters leave. */
  rollouts: readonly ViewedRollout[];
  links: PageLinks;
  /** A static folder has no filters, and shows all rows on one page. */
  hasFilters: boolean;
};

export function rolloutTable({ rollouts, query, links, hasFilters }: ListedRollouts): Markup {
  const last = Math.max(1, Math.ceil(rollouts.length / rowsOfList));
  const page = Math.min(query.page, last);
  const shown = hasFilters ? rollouts.slice((page - 1) * rowsOfList, page * rowsOfList) : rollouts;
  const filters = writeListQuery(query.filters);
  const to = (at: number) => links.run(writeListQuery(query.filters, { page: at }));
  const pager =
    !hasFilters || last < 2
      ? nothing
      : markup`<p class="pager">${page > 1 ? link(to(page - 1), "← before") : nothing} page ${page} of ${number(last)} ${page < last ? link(to(page + 1), "next →") : nothing}</p>`;
  return markup`<table class="rows list"><thead><tr><th>rollout</th><th>reward</th><th>why</th><th class="n">turns</th><th class="n">sampled</th><th class="n">trained</th><th class="n">time</th><th>step</th><th>labels</th></tr></thead>
<tbody id="rows">${shown.map((one) => rolloutRow(one, filters, links))}</tbody></table>${pager}`;
}

/** Makes a row. Its id is the rollout's, so that a changed row can replace it. */
export function rolloutRow({ id, entry }: ViewedRollout, filters: string, links: PageLinks): Markup {
  const name = entry.task_id === null ? id : `${entry.task_id}/${entry.sample_index ?? "?"}`;
  const steps = entry.policies.flatMap(({ step }) => step ?? []);
  const labels = Object.entries(entry.labels).map(([label, value]) => `${label}=${value}`);
  return markup`<tr data-id="${id}"><td>${link(links.rollout(id, { query: filters }), name.slice(0, 200))}</td><td>${rewardPill(entry.reward)}</td><td class="words">${shortWhy(entry)}</td><td class="n">${number(entry.turns)}</td><td class="n">${number(entry.sampled_tokens)}</td><td class="n">${number(entry.trainable_tokens)}</td><td class="n">${seconds(entry.seconds)}</td><td>${[...new Set(steps)].map(figure).join(", ").slice(0, 40)}</td><td class="words">${labels.join(" ").slice(0, 120)}</td></tr>`;
}

/** Uses the index only; the rollout's page says more. */
export function shortWhy(entry: ViewedRollout["entry"]): string {
  const { state, verdict, why_null, mask_reason, end } = entry;
  if (isOpen(entry)) return `not over: ${state}`;
  const failed = verdict?.failed_count
    ? `${verdict.failed_count}${verdict.required === null ? "" : ` of ${verdict.required}`} failed${verdict.failed.length === 0 ? "" : `: ${verdict.failed.join(", ")}`}`
    : null;
  const words = [
    why_null,
    failed,
    verdict !== null && verdict.status !== "graded" ? spaced(verdict.status) : null,
    mask_reason === null ? null : `not in the loss: ${spaced(mask_reason)}`,
    end === null || end === "exited" ? null : spaced(end),
  ];
  return [...new Set(words.filter((word) => word !== null))].join(" · ").slice(0, 200);
}
