/** Screen 4: shows a run's figures and its list of rollouts. Each figure links to the rollouts that it counts. */

import type { AlidadeError } from "../../base/errors.ts";
import { edgeCauses } from "../../base/schema/reasons/calls.ts";
import type { Meaning } from "../../base/schema/reasons/meaning.ts";
import { untrainedReasons } from "../../base/schema/reasons/untrained.ts";
import type { Interval } from "../../base/statistics/intervals.ts";
import { phaseNames } from "../../rollouts/records/index.ts";
import { type FilterName, filterNames } from "../run/filters.ts";
import { writeListQuery } from "../run/query.ts";
import type { RunOverview, Spread } from "../run/run-figures-of.ts";
import type { RunFidelity } from "../run/viewed-run.ts";
import { shareBar, stackedBar } from "./bars.ts";
import { meaning } from "./facts.ts";
import { link, type PageLinks } from "./links.ts";
import { type Markup, markup, nothing } from "./markup.ts";
import { type ListedRollouts, rolloutTable } from "./rollout-table.ts";
import { counted, figure, number, percent, seconds, sorted, spaced } from "./words.ts";

export type RunPage = ListedRollouts & {
  overview: RunOverview;
  fidelity: RunFidelity;
  unread: readonly string[];
  note: string;
};

/** Rows of a list next to a chart. */
const mostBars = 12;

export function runPage(page: RunPage): Markup {
  const { overview, fidelity, unread, note, hasFilters, query, rollouts } = page;
  const { all } = overview;
  return markup`${hasFilters ? filterForm(query.filters, page.links, counted(rollouts.length, "rollout")) : nothing}
<section class="figures">
<p class="big">${figure(all.mean_reward)}<small> mean reward ${interval(all.mean_interval)} · ${number(all.measured)} of ${number(all.rollouts)} rollouts measured · ${counted(all.tasks, "task")} · pass rate ${figure(all.pass_rate)} ${interval(all.pass_interval)}</small></p>
${note === "" ? nothing : markup`<p class="quiet">${note}</p>`}
${unread.length === 0 ? nothing : markup`<details class="bad"><summary>${number(unread.length)} records cannot be read</summary>${unread.slice(0, 50).map((message) => markup`<p>${message.slice(0, 500)}</p>`)}</details>`}
<div class="cards">
${stepChart(page)}
${card("Without a reward, by reason", countList(page, overview.nulls, "reward", "bad", {}, "", "none:"))}
${card("How they ended", countList(page, overview.ends, "end", "fill"))}
${card("Pass rate by task, lowest first", taskBars(page))}
${card(`Tokens: ${number(fidelity.tokens.sampled)} sampled, ${number(fidelity.tokens.trained)} trained (${percent(fidelity.tokens.trained, fidelity.tokens.sampled)})`, countList(page, fidelity.tokens.excluded, "reason", "excluded", untrainedReasons, "not trained"))}
${card("Why contexts part", causes(page))}
${card("Turns of a rollout", spread(page, overview.turns, "turns"))}
${card("Sampled tokens of a rollout", spread(page, overview.tokens, "tokens"))}
${card("Seconds by phase", phases(overview))}
</div></section>
${compareLink(page)}${rolloutTable(page)}`;
}

function compareLink({ links, query }: RunPage): Markup {
  const href = links.compare(writeListQuery(query.filters));
  return href === null ? nothing : markup`<p>${link(href, "side by side with another run, by task")}</p>`;
}

function card(title: string, body: Markup): Markup {
  return markup`<section class="card"><h2>${title}</h2>${body}</section>`;
}

function interval(found: Interval | null): string {
  return found === null ? "" : `(${found.low.toFixed(3)} to ${found.high.toFixed(3)})`;
}

/** Returns the address of the same list with one more filter. */
function narrowed({ query, links }: RunPage, name: FilterName, value: string): string | null {
  return links.run(writeListQuery(new Map(query.filters).set(name, value)));
}

function countList(
  page: RunPage,
  counts: Record<string, number>,
  filter: FilterName,
  kind: string,
  table: Readonly<Record<string, Meaning>> = {},
  words = "",
  prefix = "",
): Markup {
  const all = sorted(counts);
  if (all.length === 0) return markup`<p class="quiet">none</p>`;
  const most = all[0]?.[1] ?? 0;
  const rows = all
    .slice(0, mostBars)
    .map(
      ([name, count]) =>
        markup`<tr title="${meaning(table, name)}"><td>${link(narrowed(page, filter, `${prefix}${name}`), `${words === "" ? "" : `${words}: `}${spaced(name)}`)}</td><td class="n">${number(count)}</td><td>${shareBar(count, most, kind)}</td></tr>`,
    );
  return markup`<table class="bars">${rows}</table>${all.length > mostBars ? markup`<p class="quiet">and ${number(all.length - mostBars)} more</p>` : nothing}`;
}

/** The script draws the chart from the table. Without the script, the table is read instead. */
function stepChart(page: RunPage): Markup {
  const { steps } = page.overview;
  if (steps.length < 2 && steps[0]?.step == null)
    return card("Reward by policy step", markup`<p class="quiet">No policy of this run names a step.</p>`);
  const rows = steps.map(({ step, statistics: { mean_reward, mean_interval, measured, rollouts, pass_rate } }) => {
    const href = narrowed(page, "step", step === null ? "none" : String(step));
    return markup`<tr data-x="${step ?? ""}" data-y="${mean_reward ?? ""}" data-low="${mean_interval?.low ?? ""}" data-high="${mean_interval?.high ?? ""}"><td>${link(href, step === null ? "unknown" : String(step))}</td><td class="n">${figure(mean_reward)}</td><td>${interval(mean_interval)}</td><td class="n">${figure(pass_rate)}</td><td class="n">${number(measured)} of ${number(rollouts)}</td></tr>`;
  });
  const table = markup`<table class="rows" id="steps"><thead><tr><th>step</th><th class="n">mean reward</th><th>95 %</th><th class="n">pass rate</th><th class="n">measured</th></tr></thead><tbody>${rows}</tbody></table>`;
  return markup`<section class="card wide"><h2>Reward by policy step</h2><div class="chart" data-table="steps"></div>${steps.length > 8 ? markup`<details><summary>as a table</summary>${table}</details>` : table}</section>`;
}

function taskBars(page: RunPage): Markup {
  const { tasks } = page.overview;
  const rows = tasks
    .slice(0, mostBars)
    .map(
      ({ task_id, statistics: { pass_rate, passed, measured } }) =>
        markup`<tr><td>${link(task_id === null ? null : narrowed(page, "task", task_id), task_id ?? "no task")}</td><td class="n">${passed}/${measured}</td><td>${shareBar(pass_rate ?? 0, 1, "good")}</td></tr>`,
    );
  const more = link(page.links.tasks(), `all ${counted(tasks.length, "task")}`);
  return markup`<table class="bars">${rows}</table>${tasks.length > mostBars ? markup`<p class="quiet">${more}</p>` : nothing}`;
}

function causes(page: RunPage): Markup {
  const { causes: found, matches, calls } = page.fidelity;
  const edges = sorted(matches).map(([match, count]) => `${number(count)} ${spaced(match)}`);
  const bars = countList(page, Object.fromEntries(found.map(({ cause, calls: count }) => [cause, count])), "reason", "fill", edgeCauses);
  return markup`${bars}<p class="quiet">${number(calls)} calls: ${edges.join(", ")}</p>`;
}

function spread(page: RunPage, found: Spread | null, filter: "turns" | "tokens"): Markup {
  if (found === null) return markup`<p class="quiet">none</p>`;
  const { median, most, bounds, counts } = found;
  const highest = Math.max(...counts);
  const begin = counts.findIndex((count) => count > 0);
  const rows = counts.slice(begin).map((count, behind) => {
    const at = begin + behind;
    const [low, high] = [bounds[at - 1] ?? 0, (bounds[at] ?? 0) - 1];
    const href = count === 0 ? null : narrowed(page, filter, low === high ? String(low) : `${low}..${high}`);
    return markup`<tr><td>${link(href, low === high ? number(low) : `${number(low)} to ${number(high)}`)}</td><td class="n">${number(count)}</td><td>${shareBar(count, highest)}</td></tr>`;
  });
  return markup`<table class="bars">${rows}</table><p class="quiet">median ${number(median)}, longest ${link(narrowed(page, filter, String(most)), number(most))}</p>`;
}

function phases({ phases: found }: RunOverview): Markup {
  const names = phaseNames.filter((name) => name !== "teach" || found.teach > 0);
  const parts = names.map((name) => ({ kind: `phase-${name}`, size: found[name], title: `${name} ${seconds(found[name])}` }));
  const whole = parts.reduce((sum, { size }) => sum + size, 0);
  if (whole === 0) return markup`<p class="quiet">none on record</p>`;
  return markup`${stackedBar(parts)}<table class="bars">${parts.map(({ kind, size, title }) => markup`<tr><td>${title}</td><td class="n">${percent(size, whole)}</td><td>${shareBar(size, whole, kind)}</td></tr>`)}</table>`;
}

const hints: Record<FilterName, string> = {
  task: "slug*",
  group: "g7*",
  reward: "0, >=0.5, none",
  end: "timeout",
  label: "split=held-out",
  step: "12, >=10, none",
  turns: "4, >20, 8..15",
  tokens: ">5000, 64..71",
  reason: "undelivered, a test's name",
};

/** Shows the form again as it was filled in, with the sentence of what is not valid. */
export function wrongFilterPage(filters: ReadonlyMap<FilterName, string>, { message }: AlidadeError, links: PageLinks): Markup {
  return markup`${filterForm(filters, links, "")}<p class="bad" role="alert">${message}</p>`;
}

function filterForm(given: ReadonlyMap<FilterName, string>, links: PageLinks, found: string): Markup {
  const fields = filterNames.map(
    (name) =>
      markup`<label>${name} <input name="${name}" value="${given.get(name) ?? ""}" placeholder="${hints[name]}" size="12"></label> `,
  );
  const clear = given.size === 0 ? nothing : markup`<a href="${links.run("") ?? ""}">all rollouts</a>`;
  return markup`<form class="filters" method="get" action="./" role="search">${fields}<button>filter</button> ${clear} <span class="quiet">${found}</span></form>`;
}
