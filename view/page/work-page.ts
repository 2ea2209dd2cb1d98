/** Shows what a rollout changed, path by path. */
import type { ShownWork } from "../render-html.ts";
import type { ViewedRollout } from "../run/viewed-run.ts";
import { link, type PageLinks } from "./links.ts";
import { cutText, type Markup, markup } from "./markup.ts";

/** Bounds the characters of one path's diff. */
const longest = 100_000;

export function workPage({ id, entry }: ViewedRollout, work: ShownWork, links: PageLinks): Markup {
  const head = markup`<h1>${link(links.rollout(id), `${entry.task_id ?? id}/${entry.sample_index ?? "?"}`)} <small>what it changed</small></h1>`;
  if (work === null || typeof work === "string") return markup`${head}<p class="quiet">${work ?? "It kept no work."}</p>`;
  if (work.length === 0) return markup`${head}<p>Nothing was changed.</p>`;
  return markup`${head}${work.map(({ path, change, diff, note }) => {
    const body = diff === null ? markup`<p class="quiet">${note ?? ""}</p>` : markup`<pre>${diffLines(diff)}</pre>`;
    return markup`<details open><summary>${path} <em>${change}</em></summary>${body}</details>`;
  })}`;
}

function diffLines(diff: string): Markup {
  const lines = cutText(diff.trimEnd(), longest).split("\n").slice(2);
  return markup`${lines.map((line) => (line.startsWith("+") ? markup`<ins>${line}</ins>\n` : line.startsWith("-") ? markup`<del>${line}</del>\n` : markup`${line}\n`))}`;
}
