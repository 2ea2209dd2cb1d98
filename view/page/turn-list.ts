/** Lists the turns of a session: what each did, and where contexts branch. */

import { describeEdge } from "../describe.ts";
import type { SessionView, TurnView } from "../session-view.ts";
import { edgeMeanings } from "./edge-meanings.ts";
import { link, type PageLinks } from "./links.ts";
import { type Markup, markup, nothing } from "./markup.ts";
import type { ToolAnswers, TurnError } from "./tool-answers.ts";
import { number, spaced } from "./words.ts";

/** Turns listed around the one shown. A session may have a million turns. */
const mostListed = 300;

export type ListedTurns = { view: SessionView; answers: ToolAnswers; shown: TurnView; id: string; query: string; links: PageLinks };

export function turnList({ view: { turns }, answers, shown, id, query, links }: ListedTurns): Markup {
  const at = turns.indexOf(shown);
  const from = Math.max(0, Math.min(at - mostListed / 2, turns.length - mostListed));
  const listed = turns.slice(from, from + mostListed);
  const to = (turn: TurnView | undefined) => (turn === undefined ? null : links.rollout(id, { query, turn: turn.number }));
  const edge = (turn: TurnView | undefined, words: string) =>
    turn === undefined ? nothing : markup`<li class="quiet">${link(to(turn), words)}</li>`;
  const [before, behind] = [from > 0 ? turns[from - 1] : undefined, turns[from + mostListed]];
  return markup`<nav class="turns" aria-label="turns">
<p class="quiet">${number(turns.length)} ${turns.length === 1 ? "turn" : "turns"} · ${link(to(turns[at - 1]), "p", "key-p")} ${link(to(turns[at + 1]), "n", "key-n")}</p>
${legend(listed, answers)}
<ol>${edge(before, `… ${number(from)} before`)}${listed.map((turn) => row(turn, turn === shown, to(turn), answers.errorOf(turn)))}${edge(behind, `${number(turns.length - from - listed.length)} more …`)}</ol></nav>`;
}

const errorWords: Record<TurnError, string> = { call: "the call failed", tool: "a tool answered with an error" };

/** The marks stand before the text, so that its ellipsis never hides them. */
function row(turn: TurnView, isShown: boolean, href: string | null, error: TurnError | null): Markup {
  const { call, number: at, tokens } = turn;
  const agent = call.agent === "main" ? nothing : markup` <span class="agent">${call.agent.slice(0, 30)}</span>`;
  const parts =
    call.match !== "exact" && call.match !== "root"
      ? markup`<span class="parts" title="${edgeMeanings[call.match]}">└ ${spaced(call.match)}${call.cause === null ? "" : `: ${spaced(call.cause)}`}</span>`
      : nothing;
  const mark = error === null ? nothing : markup`<span class="bad" title="${errorWords[error]}">!</span>`;
  const untrained =
    tokens.reason === null ? nothing : markup`<span class="untrained" title="not trained: ${spaced(tokens.reason)}">●</span>`;
  return markup`<li class="${isShown ? "shown" : ""}">${parts}<span class="marks">${mark}${untrained}</span><a href="${href ?? ""}" title="${describeEdge(turn)}"><b>${at}</b>${agent} ${didWhat(turn)}</a></li>`;
}

/** Explains the marks that the list has. */
function legend(listed: readonly TurnView[], { errorOf }: ToolAnswers): Markup {
  const words = [
    listed.some((turn) => errorOf(turn) !== null) ? "! an error" : "",
    listed.some(({ tokens }) => tokens.reason !== null) ? "● not trained" : "",
  ].filter((word) => word !== "");
  return words.length === 0 ? nothing : markup`<p class="quiet small">${words.join(" · ")}</p>`;
}

/** Returns its first tool call, else the beginning of its text. */
function didWhat({ output, call }: TurnView): string {
  const called = output.find(({ kind }) => kind === "tool_call");
  const said = output.find(({ kind }) => kind === "assistant") ?? output[0];
  const what = called ? `${called.detail} ${called.text}` : (said?.text ?? call.error?.code ?? spaced(call.outcome));
  return what.slice(0, 70).replace(/\s+/g, " ");
}
