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

const keys: [string, string][] = [
  ["j, k", "next and previous rollout of the list"],
  ["n, p", "next and previous turn"],
  ["t", "tokens of the session"],
  ["d", "group: where samples part"],
  ["g", "tasks and groups"],
  ["r", "the run"],
  ["/", "filter"],
  ["?", "these keys"],
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
<header><nav>${links.above === null ? nothing : link(links.above.href, links.above.name)} <b>${run}</b> ${link(links.run(""), "Run", "key-r")} ${link(links.tasks(), "Tasks and groups", "key-g")}<span class="live" hidden></span></nav></header>
<main>${body}</main>
<dialog id="keys"><table>${keys.map(([key, what]) => markup`<tr><th><kbd>${key}</kbd></th><td>${what}</td></tr>`)}</table></dialog>
</body>
</html>
`.toString();
}
