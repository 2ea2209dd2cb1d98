/** Lays out what every page has: head, links to the other pages, and keys. */
import { link, type PageLinks } from "./links.ts";
import { type Markup, markup, nothing } from "./markup.ts";

export type PageFrame = {
  title: string;
  /** The run's name. */
  run: string;
  links: PageLinks;
  body: Markup;
  /** Content security policy of a static page, which has no headers. */
  policy?: string;
  hasChart?: boolean;
};

/** Allows only our own scripts, styles and pictures: nothing inline, no `data:` pictures. Pages send nothing anywhere else. */
export const contentPolicy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/** The same without `frame-ancestors`, which works only as a header. */
export const staticPolicy = contentPolicy.replace("; frame-ancestors 'none'", "").replaceAll("'self'", "'self' file:");

/** Keys, what they do, and what a page has if they work there. The script shows those alone. */
const keys: [string, string, string][] = [
  ["j, k", "next and previous rollout of the list", "a.key-j, a.key-k"],
  ["j, k", "next and previous row; Enter opens it", "table.list tbody tr, table.tasks tbody tr, .samples section"],
  ["n, p", "next and previous turn", "a.key-n, a.key-p"],
  ["t", "tokens of the session", "a.key-t"],
  ["d", "group: where samples part", "a.key-d"],
  ["u", "back to the rollout", "h1 a[href^=rollout]"],
  ["u", "back to the list", ".steps a[class='']"],
  ["g", "tasks and groups", "a.key-g"],
  ["r", "the run", "a.key-r"],
  ["/", "filter", ".filters input"],
  ["?", "these keys", "body"],
];

export function toPage({ title, run, links, body, policy, hasChart = false }: PageFrame): string {
  const meta = policy === undefined ? nothing : markup`<meta http-equiv="Content-Security-Policy" content="${policy}">`;
  const chart = hasChart ? markup`<link rel="stylesheet" href="assets/uplot.css"><script src="assets/uplot.js" defer></script>` : nothing;
  return markup`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">${meta}
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>${title} · Alidade</title>
<link rel="icon" href="assets/icon.svg"><link rel="stylesheet" href="assets/page.css">${chart}
<script src="assets/page.js" defer></script>
</head>
<body data-live="${links.isLive ? "events" : ""}">
<header><nav>${links.above === null ? nothing : link(links.above.href, links.above.name)} <b>${run}</b> ${link(links.run(""), "Run", "key-r")} ${link(links.tasks(), "Tasks and groups", "key-g")}<span class="live" hidden></span><button class="keys" hidden><kbd>?</kbd> keys</button></nav></header>
<main>${body}</main>
<dialog id="keys"><table>${keys.map(([key, what, where]) => markup`<tr data-where="${where}"><th><kbd>${key}</kbd></th><td>${what}</td></tr>`)}</table><form method="dialog"><button>close</button></form></dialog>
</body>
</html>
`.toString();
}
