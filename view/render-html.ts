/**
 * A session as one static page: no script, nothing loaded, everything escaped. A content security policy stands in
 * the page as well, so that even a mistake here could load and run nothing.
 */
import type { RolloutRecord } from "../base/schema/rollout.ts";
import type { Trajectory } from "../base/schema/trajectory.ts";
import {
  blockLabels,
  describeBranch,
  describeDifference,
  describeEdge,
  describeFidelity,
  describeRepeated,
  describeSession,
  describeTokens,
  describeTrace,
  spanWidth,
  spanWords,
} from "./describe.ts";
import { describeRecord } from "./describe-verdict.ts";
import { type BlockView, type BranchView, type TraceView, type TurnView, toSessionView } from "./session-view.ts";
import { visibleText } from "./text/visible-text.ts";
import type { PathDiff } from "./work-diff.ts";

/** What a rollout changed, path by path; a sentence where that cannot be shown; null where there is no work. */
export type ShownWork = PathDiff[] | string | null;

export function renderHtml(trajectory: Trajectory, record: RolloutRecord | null = null, work: ShownWork = null): string {
  const view = toSessionView(trajectory);
  const title = `Alidade session ${trajectory.session_id}`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(title)}</title>
<style>${style}</style>
</head>
<body>
<main>
<h1>${escaped(trajectory.task.id ?? trajectory.session_id)} <span class="${rewardClass(trajectory.reward)}">${reward(trajectory)}</span></h1>
${table(describeSession(view))}
${record === null ? "" : `<h2>Why</h2>\n${table(describeRecord(record, work !== null))}`}
${changes(work)}
<h2>Traces</h2>
${legend}
${traces(view.traces) || "<p>No token ids were recorded, so there are no traces.</p>"}
<h2>Branches</h2>
<ul class="branches">
${view.branches.map(branch).join("\n")}
</ul>
<h2>Turns</h2>
${view.turns.map(turnSection).join("\n")}
<h2>Fidelity</h2>
${table(describeFidelity(view))}
</main>
</body>
</html>
`;
}

/** For text and for attribute values in double quotes. */
function escaped(text: string): string {
  const entities: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
  return visibleText(text).replace(/[&<>"']/g, (character) => entities[character] as string);
}

function reward({ reward: value }: Trajectory): string {
  return value === null ? "no reward" : `reward ${escaped(String(value))}`;
}

function rewardClass(value: number | null): string {
  return value === null ? "pill" : value > 0 ? "pill good" : "pill bad";
}

function table(rows: [string, string][]): string {
  // Several lines are what a program printed, or a list: both are read by their columns.
  const cells = rows.map(([name, value]) => {
    const text = value.includes("\n") ? `<pre>${escaped(value)}</pre>` : escaped(value);
    return `<tr><th>${escaped(name)}</th><td>${text}</td></tr>`;
  });
  return `<table>${cells.join("")}</table>`;
}

const legend = `<p class="legend">${Object.entries(spanWords)
  .map(([kind, word]) => `<span><i class="${kind}"></i>${word}</span>`)
  .join("")}<span>widths are logarithmic, of one scale</span></p>`;

function changes(work: ShownWork): string {
  if (work === null) return "";
  if (typeof work === "string") return `<h2>Changes</h2>\n<p class="quiet">${escaped(work)}</p>`;
  return `<h2>Changes</h2>\n${work.map(changedPath).join("\n") || "<p>Nothing was changed.</p>"}`;
}

function changedPath({ path, change, diff, note }: PathDiff): string {
  const lines = diff === null ? [] : diff.trimEnd().split("\n").slice(diffHead);
  const body = diff === null ? `<p class="quiet">${escaped(note ?? "")}</p>` : `<pre>${lines.map(diffLine).join("\n")}</pre>`;
  return `<details${lines.length <= folded.lines * 3 ? " open" : ""}><summary>${escaped(path)} <em>${change}</em></summary>${body}</details>`;
}

/** The two lines that name the file, which the summary does. */
const diffHead = 2;

function diffLine(line: string): string {
  const kind = line.startsWith("+") ? "ins" : line.startsWith("-") ? "del" : null;
  return kind === null ? escaped(line) : `<${kind}>${escaped(line)}</${kind}>`;
}

/** Strips of one scale, so that a longer one has more in it. */
function traces(views: TraceView[]): string {
  const widths = views.map(({ spans }) => spans.reduce((sum, { tokens }) => sum + spanWidth(tokens), 0));
  const widest = Math.max(1, ...widths);
  return views.map((view, at) => trace(view, (100 * (widths[at] ?? 0)) / widest)).join("\n");
}

/** `width`: of the page, in percent. */
function trace(view: TraceView, width: number): string {
  const cells = view.spans.map(
    ({ kind, tokens: n, title }) => `<i class="${kind}" style="flex-grow:${spanWidth(n)}" title="${escaped(title)}"></i>`,
  );
  return `<figure><figcaption>${escaped(describeTrace(view))}</figcaption><div class="strip" style="width:${width.toFixed(1)}%">${cells.join("")}</div></figure>`;
}

function branch(view: BranchView): string {
  const { turns, depth } = view;
  const [first] = turns as [TurnView];
  const links = turns.map(({ number }) => `<a href="#turn-${number}">${number}</a>`);
  const difference = describeDifference(first);
  const texts =
    difference === null
      ? ""
      : `<div class="difference"><del>${escaped(difference.before)}</del><ins>${escaped(difference.now)}</ins></div>`;
  const edge = `<span class="${edgeClass(first)}">${escaped(describeEdge(first))}</span>`;
  // Deeper branches are not indented further: the page is too narrow. The text still names the branch.
  return `<li style="margin-left:${Math.min(depth, 12) * 1.5}rem">${links.join(" → ")} · ${edge} · ${escaped(describeBranch(view))}${texts}</li>`;
}

function edgeClass({ call }: TurnView): string {
  return call.match === "exact" || call.match === "root" ? "quiet" : "alert";
}

function turnSection(turn: TurnView): string {
  const { call, number } = turn;
  const pills = [call.agent, call.request_class, call.outcome, call.finish_reason].filter((word) => word !== null && word !== "main");
  const error = call.error === null ? "" : `<p class="alert">${escaped(`${call.error.code}: ${call.error.message}`)}</p>`;
  const again = describeRepeated(turn);
  const repeated = again === "" ? "" : `<p class="quiet">${escaped(again)}</p>`;
  return `<section id="turn-${number}">
<h3>Turn ${number} ${pills.map((word) => `<span class="pill">${escaped(word ?? "")}</span>`).join(" ")}</h3>
<p class="${edgeClass(turn)}">${escaped(describeEdge(turn))}; ${escaped(describeTokens(turn.tokens))}</p>
${error}${repeated}${[...turn.added, ...turn.output].map(block).join("\n")}
</section>`;
}

/** A longer text is folded; the browser opens it without a script. */
const folded = { characters: 1200, lines: 20 };

function block({ kind, detail, text, error }: BlockView): string {
  const label = `${blockLabels[kind]}${detail === "" ? "" : ` ${detail}`}`;
  const head = `<span class="label">${escaped(label)}</span>`;
  const folds = kind !== "assistant" && (text.length > folded.characters || text.split("\n").length > folded.lines);
  const body = folds
    ? `<details><summary>${escaped(text.slice(0, 160))} … <em>${text.length.toLocaleString("en")} characters</em></summary><pre>${escaped(text)}</pre></details>`
    : `<pre>${escaped(text)}</pre>`;
  return `<div class="block ${kind}${error ? " error" : ""}">${head}${body}</div>`;
}

const style = `
:root{color-scheme:light dark;--page:#fbfaf8;--ink:#1d1f23;--faint:#5d6470;--line:#dcd9d3;--card:#fff;--code:#f3f1ed;
--prompt:#c9c5bc;--observation:#8fa3b8;--trainable:#1f8a5b;--forced:#d9a520;--excluded:#c0504d;--link:#1d5fa8}
@media (prefers-color-scheme:dark){:root{--page:#16181c;--ink:#e6e4df;--faint:#9aa1ad;--line:#33373f;--card:#1e2126;--code:#262a31;
--prompt:#4b4f57;--observation:#51687f;--trainable:#35b57d;--forced:#d9a520;--excluded:#d0605c;--link:#7db4ee}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
main{max-width:62rem;margin:0 auto;padding:2rem 1.25rem 4rem}
h1{font-size:1.5rem;overflow-wrap:anywhere}h2{margin:2.25rem 0 .5rem;font-size:1.15rem}h3{margin:0 0 .25rem;font-size:1rem}
a{color:var(--link)}p{margin:.25rem 0}em{color:var(--faint)}
table{border-collapse:collapse}th{padding:.1rem 1.5rem .1rem 0;font-weight:400;text-align:left;color:var(--faint);white-space:nowrap;vertical-align:top}
td{overflow-wrap:anywhere;white-space:pre-wrap}
.pill{padding:.1rem .5rem;border:1px solid var(--line);border-radius:1rem;font-size:.8rem;font-weight:400}
.good{border-color:var(--trainable);color:var(--trainable)}.bad,.error .label{border-color:var(--excluded);color:var(--excluded)}
.quiet{color:var(--faint)}.alert{color:var(--excluded)}
figure{margin:.5rem 0 .9rem}figcaption{color:var(--faint);font-size:.9rem}
.strip{display:flex;height:1.1rem;overflow:hidden;border-radius:.2rem}
.strip i{min-width:2px;border-right:1px solid var(--page)}
.legend{color:var(--faint);font-size:.9rem}.legend span{margin-right:1.1rem}
.legend i{display:inline-block;width:.8rem;height:.8rem;margin-right:.35rem;border-radius:.15rem;vertical-align:-.08rem}
.prompt{background:var(--prompt)}.observation{background:var(--observation)}.trainable{background:var(--trainable)}
i.forced{background:var(--forced)}.excluded{background:var(--excluded)}
.branches{padding:0;list-style:none}.branches li{padding:.15rem 0 .15rem .75rem;border-left:2px solid var(--line)}
.difference{display:grid;gap:.15rem;font:.85rem/1.4 ui-monospace,monospace}
.difference del,.difference ins{padding:.1rem .4rem;background:var(--code);text-decoration:none;white-space:pre-wrap;overflow-wrap:anywhere}
.difference del::before{content:"before  ";color:var(--faint)}.difference ins::before{content:"now     ";color:var(--faint);white-space:pre}
section{margin:.9rem 0;padding:1rem 1.1rem;border:1px solid var(--line);border-radius:.5rem;background:var(--card)}
.block{display:grid;grid-template-columns:6.5rem minmax(0,1fr);gap:.75rem;margin-top:.6rem}
.label{color:var(--faint);font-size:.85rem;overflow-wrap:anywhere}
pre{margin:0;font:.85rem/1.45 ui-monospace,monospace;white-space:pre-wrap;overflow-wrap:anywhere}
.tool_call pre,.tool_result pre{padding:.4rem .6rem;border-radius:.3rem;background:var(--code)}
.reasoning pre{color:var(--faint);font-style:italic}
pre ins,pre del{text-decoration:none}pre ins{color:var(--trainable)}pre del{color:var(--excluded)}
summary{cursor:pointer;overflow-wrap:anywhere}
@media (max-width:40rem){.block{grid-template-columns:1fr;gap:.15rem}}
`;
