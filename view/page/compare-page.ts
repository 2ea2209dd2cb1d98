/** Screen 4 for two runs: tasks side by side, with the paired difference. */
import type { RunComparison, TaskPair, TaskSide } from "../run/compare-runs.ts";
import { link } from "./links.ts";
import { type Markup, markup, nothing } from "./markup.ts";
import { figure, number } from "./words.ts";

/** `linkTo`: the address of this side's rollouts of a task. */
export type ComparedSide = { name: string; linkTo: (taskId: string) => string | null };

export type ComparePage = {
  comparison: RunComparison;
  one: ComparedSide;
  other: ComparedSide;
  filters: string;
  page: number;
  set: string | null;
};

const tasksAPage = 200;

export function comparePage({ comparison, one, other, filters, page, set }: ComparePage): Markup {
  const { tasks, paired, difference, interval, means } = comparison;
  const unpaired = tasks.length - paired;
  const last = Math.max(1, Math.ceil(tasks.length / tasksAPage));
  const at = Math.min(page, last);
  const to = (which: number) => {
    const address = new URLSearchParams(filters);
    if (set !== null) address.set("set", set);
    address.set("page", String(which));
    return `compare?${address}`;
  };
  const pager =
    last === 1
      ? nothing
      : markup`<p class="pager">${at > 1 ? link(to(at - 1), "← before") : ""} page ${at} of ${number(last)} ${at < last ? link(to(at + 1), "next →") : ""}</p>`;
  const between = interval === null ? "" : ` (${signed(interval.low)} to ${signed(interval.high)})`;
  return markup`<h1>${one.name} <small>and</small> ${other.name}</h1>
<p class="big">${difference === null ? "–" : signed(difference)}<small>${between} paired difference of the mean reward, over ${number(paired)} tasks that both measured${means === null ? "" : `: ${figure(means.one)} and ${figure(means.other)}`}</small></p>
<p class="quiet">Each task counts the same. The interval (95 %) is over tasks${interval === null && paired > 0 ? "; it needs two tasks whose differences are not all the same" : ""}.${unpaired === 0 ? "" : ` ${number(unpaired)} tasks were measured by one run or none, and count in no difference.`}${filters === "" ? "" : ` Both by the filters ${filters.replaceAll("&", ", ")}.`}</p>
<table class="rows list"><thead><tr><th>task</th><th class="n">${one.name}</th><th class="n">${other.name}</th><th class="n">difference</th></tr></thead><tbody>
${tasks.slice((at - 1) * tasksAPage, at * tasksAPage).map((task) => row(task, one, other))}</tbody></table>${pager}`;
}

function row({ task_id, one: here, other: there, difference }: TaskPair, one: ComparedSide, other: ComparedSide): Markup {
  const kind = difference === null || difference === 0 ? "quiet" : difference > 0 ? "better" : "bad";
  return markup`<tr><td>${task_id.slice(0, 200)}</td><td class="n">${side(here, one.linkTo(task_id))}</td><td class="n">${side(there, other.linkTo(task_id))}</td><td class="n ${kind}">${difference === null ? "–" : signed(difference)}</td></tr>`;
}

function side({ rollouts, measured, mean }: TaskSide, href: string | null): Markup {
  if (rollouts === 0) return markup`<span class="quiet">not in it</span>`;
  const words = `${measured} of ${rollouts}`;
  return markup`${link(href, figure(mean))} <span class="quiet">${words}</span>`;
}

function signed(value: number): string {
  return `${value > 0 ? "+" : value < 0 ? "−" : ""}${figure(Math.abs(value))}`;
}

/** Lists what a set can be held against. */
export function comparedSets(sets: readonly { set_id: string; key: string }[], own: string, filters: string): Markup {
  const others = sets.filter(({ set_id }) => set_id !== own);
  const to = (set: string) => `compare?${filters === "" ? "" : `${filters}&`}${new URLSearchParams({ set })}`;
  return markup`<h1>Compare with</h1>${others.length === 0 ? markup`<p class="quiet">There is no other set.</p>` : nothing}
<table class="rows"><tbody>${others.map(({ set_id, key }) => markup`<tr><td>${link(to(set_id), key.slice(0, 200))}</td></tr>`)}</tbody></table>`;
}
