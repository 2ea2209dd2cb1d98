/** Lists the sets of a service, and lets its reader in. Both stand outside of any set's pages. */
import type { SetState } from "../../service/ledger/index.ts";
import { link } from "./links.ts";
import { type Markup, markup, nothing } from "./markup.ts";
import { number } from "./words.ts";

/** `total`: of all sets; those that are given are the newest. */
export function setsPage({ total, sets }: { total: number; sets: readonly SetState[] }): string {
  const counts = ["completed", "failed", "cancelled", "running", "queued", "held"] as const;
  const rows = sets.map(({ set_id, key, namespace, spec, rollouts, groups, is_over }) => {
    const numbers = counts.map((name) => markup`<td class="n">${number(rollouts[name])}</td>`);
    return markup`<tr><td>${link(`${set_id}/`, key.slice(0, 200))}</td><td class="words">${[namespace, spec.purpose, spec.harness].filter((word) => word !== null && word !== "").join(" · ")}${is_over ? " · over" : ""}</td><td class="n">${number(groups.whole)}</td>${numbers}</tr>`;
  });
  const more = total > sets.length ? markup`<p class="quiet">The newest ${number(sets.length)} of ${number(total)}.</p>` : nothing;
  return standing(
    "Sets",
    markup`<h1>Sets <small>${number(total)}</small></h1>${sets.length === 0 ? markup`<p class="quiet">There is none yet.</p>` : nothing}
<table class="rows"><thead><tr><th>set</th><th></th><th class="n">whole groups</th>${counts.map((name) => markup`<th class="n">${name}</th>`)}</tr></thead><tbody>${rows}</tbody></table>${more}`,
  );
}

/** `message`: what was wrong with the token that came; null: none came. */
export function signInPage(message: string | null): string {
  return standing(
    "Sign in",
    markup`<h1>Alidade</h1>${message === null ? nothing : markup`<p class="bad">${message}</p>`}
<form method="post" action="sign-in"><p><label>token with the role <code>read</code> <input type="password" name="token" autocomplete="current-password" required autofocus></label> <button>open</button></p></form>`,
  );
}

function standing(title: string, body: Markup): string {
  return markup`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="referrer" content="no-referrer">
<title>${title} · Alidade</title><link rel="icon" href="assets/icon.svg"><link rel="stylesheet" href="assets/page.css"></head>
<body><main>${body}</main></body></html>
`.toString();
}
