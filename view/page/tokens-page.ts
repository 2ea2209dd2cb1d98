/** Screen 2: shows a session's tokens, and why any of them is not trained. */
import { type UntrainedReason, untrainedReasons } from "../../base/schema/reasons/untrained.ts";
import type { Trajectory } from "../../base/schema/trajectory.ts";
import { tokensOutside } from "../../reconstruct/index.ts";
import type { TokenOfPage, TokenRun, TokenWindow } from "../tokens/token-window.ts";
import { windowTokens } from "../tokens/token-window.ts";
import { meaning } from "./facts.ts";
import { link, type PageLinks } from "./links.ts";
import { cutText, type Markup, markup, nothing } from "./markup.ts";
import { number, spaced } from "./words.ts";

/** Those that every record has. */
export const colours = ["logprob", "mask", "policy"] as const;
/** Needs a trainer's file. */
export const trainerColour = "Δtrainer";
export type Colour = (typeof colours)[number] | typeof trainerColour;

/** Stands beside the colours, because readers look for it. What a record has of a few alternatives gives only a bound. */
const noEntropy =
  "No colour by entropy: no record has it, because it needs the logprobs of the whole vocabulary at each token, and engines report those of a few.";

export type TokensPage = {
  trajectory: Trajectory;
  /** null: no token ids are recorded. */
  window: TokenWindow | null;
  /** Why some tokens have no text; null: all have one. */
  whyUnknown: string | null;
  colour: Colour;
  /** Those that the page offers. */
  colours: readonly Colour[];
  links: PageLinks;
};

export function tokensPage(page: TokensPage): Markup {
  const { trajectory, window, colour, links } = page;
  const { session_id, task, group, fidelity } = trajectory;
  const head = markup`<h1>${link(links.rollout(session_id), `${task.id ?? session_id}${group.sample_index === null ? "" : `/${group.sample_index}`}`)} <small>tokens · ${number(fidelity.sampled_tokens)} sampled · ${number(fidelity.trainable_tokens)} trained</small></h1>${traceChoice(page)}${outside(trajectory)}`;
  if (window === null)
    return markup`${head}<p class="quiet">No token ids were recorded, so there is nothing to show: ${trajectory.calls.find(({ missing }) => missing !== null)?.missing ?? "the engine gave none"}.</p>`;
  const choice = page.colours.map((name) =>
    link(
      links.tokens(session_id, { trace: window.trace_id, from: window.from, colour: name }),
      name,
      `colour colour-${name}${name === colour ? " chosen" : ""}`,
    ),
  );
  return markup`${head}
<p class="colours">colour: ${choice}<span aria-disabled="true" aria-describedby="no-entropy">entropy</span> <span class="legend-tokens">${legend(page)}</span></p>
<p class="quiet" id="no-entropy">${noEntropy}</p>
${unknownTexts(page, window)}
${window.from > 0 ? link(links.tokens(session_id, { trace: window.trace_id, from: Math.max(0, window.from - windowTokens), colour }), `${number(window.from)} tokens before`, "before") : nothing}
<div id="tokens" data-colour="${colour}">${tokenRuns(page, window)}</div>
${moreLink(page, window)}
<p id="token" role="status" class="quiet">Point at a token, or click it, to read what is on record of it.</p>`;
}

function unknownTexts({ whyUnknown }: TokensPage, { runs }: TokenWindow): Markup {
  if (whyUnknown === null) return nothing;
  const lacking = runs.reduce((sum, { tokens }) => sum + tokens.filter(({ text }) => text === null).length, 0);
  return markup`<p class="quiet">${number(lacking)} tokens are shown as ids, each in a frame: ${whyUnknown}.</p>`;
}

function moreLink({ trajectory, colour, links }: TokensPage, { to, length, trace_id }: TokenWindow): Markup {
  if (to >= length) return markup`<p class="quiet end">the end: ${number(length)} tokens</p>`;
  return link(links.tokens(trajectory.session_id, { trace: trace_id, from: to, colour }), `${number(length - to)} tokens behind`, "more");
}

/** Renders the runs of one window, for the page and for windows that are loaded later. */
function tokenRuns(page: TokensPage, window: TokenWindow): Markup {
  return markup`<div class="window" data-from="${window.from}">${window.runs.map((run) => runView(run, page))}</div>`;
}

/** Folds a context of this length, because readers look for sampled tokens. */
const foldedContext = 40;

function runView(run: TokenRun, page: TokensPage): Markup {
  const { kind, tokens, turn, from } = run;
  const lowest = kind === "sampled" ? lowestOf(tokens) : -1;
  const spans = markup`<p class="run ${kind}">${tokens.map((token, at) => tokenView(token, run, from + at, page, at === lowest))}</p>`;
  if (kind === "sampled")
    return markup`<section id="turn-${turn ?? 0}-${from}"><h2>${sampledHead(run)}</h2>${spans}${untrainedWords(run)}${notHeld(run)}</section>`;
  const words = `${kind} of turn ${turn ?? "?"}, ${partWords(run)}`;
  if (tokens.length <= foldedContext) return markup`<section><p class="quiet">${words}</p>${spans}</section>`;
  return markup`<details class="context"><summary>${words}</summary>${spans}</details>`;
}

/** `40 tokens`, or `tokens 301 to 340 of 340` if the window shows only a part. */
function partWords({ tokens: { length }, part: { from, of } }: TokenRun): string {
  return length === of ? `${number(length)} tokens` : `tokens ${number(from + 1)} to ${number(from + length)} of ${number(of)}`;
}

function sampledHead(run: TokenRun): Markup {
  const { turn, call, tokens, from, part, policy_version } = run;
  const count = tokens.length === part.of ? `${number(tokens.length)} sampled` : `sampled ${partWords(run)}`;
  // A turn that weights changed in has a stretch for each policy.
  const step = [call?.policy.start, call?.policy.end].find((policy) => policy?.version === policy_version)?.step ?? null;
  const policy = policy_version === null ? "" : ` · policy ${policy_version.slice(0, 60)}${step === null ? "" : `, step ${step}`}`;
  return markup`turn ${turn ?? "?"} <small>· ${count} · from position ${number(from)}${policy}${lowestLink(run)}</small>`;
}

/** Index of the token with the lowest recorded logprob; -1: none has one. */
function lowestOf(tokens: readonly TokenOfPage[]): number {
  let lowest = -1;
  let least = Number.POSITIVE_INFINITY;
  for (const [at, { logprob }] of tokens.entries()) if (logprob !== null && logprob < least) [lowest, least] = [at, logprob];
  return lowest;
}

function lowestLink({ tokens, from }: TokenRun): Markup {
  const at = lowestOf(tokens);
  const logprob = tokens[at]?.logprob ?? null;
  if (logprob === null) return nothing;
  return markup` · <a href="#low-${from + at}">lowest logprob ${logprob.toFixed(3)}</a>`;
}

function notHeld({ not_comparable }: TokenRun): Markup {
  if (not_comparable === null) return nothing;
  return markup`<p class="quiet">The trainer's logprobs of this call cannot be held against the recorded ones: ${spaced(not_comparable)}</p>`;
}

/** Lists each reason in the run: how many tokens, which ones, and what it means. */
function untrainedWords(run: TokenRun): Markup {
  const reasons = new Map<string, UntrainedStretch[]>();
  for (const [at, { reason }] of run.tokens.entries()) {
    if (reason === null) continue;
    const stretches = reasons.get(reason) ?? [];
    const last = stretches.at(-1);
    if (last?.last === at - 1) last.last = at;
    else stretches.push({ first: at, last: at });
    reasons.set(reason, stretches);
  }
  return markup`${[...reasons].map(
    ([reason, stretches]) =>
      markup`<p class="untrained-words">not trained: ${number(sizeOf(stretches))} ${spaced(reason)}: ${placesOf(stretches, run)} <span class="quiet">${meaning(untrainedReasons, reason)}</span></p>`,
  )}`;
}

/** Neighbouring tokens of a run. Both ends are in it. */
type UntrainedStretch = { first: number; last: number };

function sizeOf(stretches: readonly UntrainedStretch[]): number {
  return stretches.reduce((sum, { first, last }) => sum + last - first + 1, 0);
}

/** Says "from … on" only if it holds for every token behind, and the turn ends in this window. */
function placesOf(stretches: readonly UntrainedStretch[], run: TokenRun): Markup {
  const { tokens, part } = run;
  if (sizeOf(stretches) === tokens.length && tokens.length > 1)
    return markup`${tokens.length === part.of ? "the whole turn" : "all that is shown of the turn"}`;
  const isEnd = part.from + tokens.length === part.of;
  const [only] = stretches;
  if (only !== undefined && stretches.length === 1 && isEnd && only.first < only.last && only.last === tokens.length - 1)
    return markup`from ${tokenWords(only.first, run)} on`;
  const named = stretches.slice(0, mostPlaces).map(({ first, last }, at) => {
    const end = first === last ? nothing : markup` to ${tokenWords(last, run)}`;
    return markup`${at === 0 ? "" : ", "}${tokenWords(first, run)}${end}`;
  });
  const more = stretches.length - mostPlaces;
  return markup`${named}${more > 0 ? ` and ${number(more)} more places` : ""}`;
}

const mostPlaces = 4;

function tokenWords(at: number, { tokens, from }: TokenRun): Markup {
  const text = tokens[at]?.text ?? null;
  return text === null ? markup`position ${number(from + at)}` : markup`“<code>${cutText(text, 40)}</code>”`;
}

function tokenView(token: TokenOfPage, run: TokenRun, position: number, page: TokensPage, isLowest: boolean): Markup {
  const { id, text, logprob, reason } = token;
  const policies = page.trajectory.fidelity.policy_versions;
  const hasTrainer = page.colours.includes(trainerColour);
  const isSampled = run.kind === "sampled";
  const mask = !isSampled ? "m-context" : reason === null ? "m-trained" : reason === "forced" ? "m-forced" : "m-not";
  const at = run.policy_version === null ? -1 : policies.indexOf(run.policy_version);
  const policy = !isSampled ? "" : at < 0 ? " v-none" : ` v-${at % policyColours}`;
  const trained = !isSampled ? run.kind : reason === null ? "trained" : `not trained: ${spaced(reason)}`;
  const told = hasTrainer && isSampled ? ` · ${trainerWords(token, run)}` : "";
  const words = `id ${id} · logprob ${logprob === null ? "none" : logprob.toFixed(3)}${told} · ${trained} · position ${position} · turn ${run.turn ?? "?"} · node ${run.node_id}`;
  const known = text === null ? markup`<u>${id}</u>` : lines(cutText(text, 200));
  const trainer = told === "" ? "" : ` ${differenceClass(differenceOf(token, run))}`;
  return markup`<i class="${mask}${isSampled ? ` ${logprobClass(logprob)}` : ""}${policy}${trainer}" title="${words}"${isLowest ? markup` id="low-${position}"` : nothing}>${known}</i>`;
}

const policyColours = 6;

/** Shows a line end as a sign, followed by the line end itself. */
function lines(text: string): Markup {
  const pieces = text.split("\n");
  return markup`${pieces.map((piece, at) => (at === 0 ? markup`${piece}` : markup`<b>⏎</b>\n${piece}`))}`;
}

/** Classes of a colour scale, from likely to unlikely tokens. */
function logprobClass(logprob: number | null): string {
  if (logprob === null) return "l-none";
  const bound = [-0.05, -0.3, -1, -2, -4].findIndex((least) => logprob >= least);
  return `l-${bound < 0 ? 5 : bound}`;
}

/** Recorded minus recomputed, in nats; null: one of them is missing, or they are not of the same distribution. */
function differenceOf({ logprob, trainer }: TokenOfPage, { not_comparable }: TokenRun): number | null {
  return logprob === null || trainer === null || not_comparable !== null ? null : logprob - trainer;
}

function trainerWords(token: TokenOfPage, run: TokenRun): string {
  if (token.trainer === null) return "trainer none";
  const difference = differenceOf(token, run);
  return `trainer ${token.trainer.toFixed(3)}${difference === null ? "" : `, Δ ${difference.toFixed(3)}`}`;
}

/** Classes of a colour scale, from equal logprobs to those of another model. */
function differenceClass(difference: number | null): string {
  if (difference === null) return "d-none";
  const bound = differenceBounds.findIndex((most) => Math.abs(difference) <= most);
  return `d-${bound < 0 ? differenceBounds.length : bound}`;
}

const differenceBounds = [0.01, 0.05, 0.2, 1, 3];

function legend({ trajectory: { fidelity }, colours: offered }: TokensPage): Markup {
  const scale = ["≥ −0.05", "≥ −0.3", "≥ −1", "≥ −2", "≥ −4", "below"].map(
    (words, at) => markup`<i class="l-${at} m-trained">${words}</i>`,
  );
  const masks = [
    ["m-trained", "trained"],
    ["m-forced", "forced"],
    ["m-not", "not trained"],
    ["m-context", "context"],
  ].map(([kind, words]) => markup`<i class="${kind}">${words}</i>`);
  const policies = fidelity.policy_versions
    .slice(0, 12)
    .map((version, at) => markup`<i class="v-${at % policyColours}">${version.slice(0, 40)}</i>`);
  return markup`<span data-of="logprob" data-colour="logprob">${scale}<i class="m-forced">forced</i><i class="m-not">not trained</i></span><span data-of="mask" data-colour="mask">${masks}</span><span data-of="policy" data-colour="policy">${policies}</span>${offered.includes(trainerColour) ? trainerLegend() : nothing}`;
}

function trainerLegend(): Markup {
  const scale = [...differenceBounds.map((most) => `≤ ${most}`), "more"].map((words, at) => markup`<i class="d-${at}">${words}</i>`);
  return markup`<span data-of="${trainerColour}" data-colour="${trainerColour}">|Δ| in nats: ${scale}<i class="d-none">not held against it</i></span>`;
}

/** Links to the session's traces. Each branch of the tree has its own trace. */
function traceChoice({ trajectory, window, colour, links }: TokensPage): Markup {
  if (window === null || trajectory.traces.length < 2) return nothing;
  const calls = new Map(trajectory.nodes.map(({ node_id, call_id }) => [node_id, call_id]));
  const turns = new Map(trajectory.calls.map(({ call_id, outcome }, at) => [call_id, { turn: at + 1, outcome }]));
  const shown = trajectory.traces.slice(0, mostTraces).map(({ trace_id, agent, leaf_node_id }) => {
    const { turn = null, outcome = "delivered" } = turns.get(calls.get(leaf_node_id) ?? "") ?? {};
    const end = turn === null ? "" : `, ends at turn ${turn}${outcome === "delivered" ? "" : `: ${spaced(outcome)}`}`;
    const kind = trace_id === window.trace_id ? "chosen" : "";
    return markup`${link(links.tokens(trajectory.session_id, { trace: trace_id, from: 0, colour }), `${trace_id} (${agent.slice(0, 40)}${end})`, kind)} `;
  });
  const more = trajectory.traces.length - mostTraces;
  return markup`<p class="traces">branches: ${shown}${more > 0 ? `and ${number(more)} more` : ""}</p>`;
}

const mostTraces = 30;

/** Counts the sampled tokens that no trace holds, by reason: those whose ids are not recorded, and those of damaged lines. */
function outside(trajectory: Trajectory): Markup {
  const turns = new Map(trajectory.calls.map(({ call_id }, at) => [call_id, at + 1]));
  const calls = tokensOutside(trajectory).filter(({ call, tokens }) => tokens > 0 || call.output !== null);
  const lost = trajectory.fidelity.damaged.reduce((sum, { sampled_tokens }) => sum + (sampled_tokens ?? 0), 0);
  const byReason = [...Map.groupBy(calls, ({ reason }) => reason)].map(([reason, all]) => {
    const named = all.map(({ call, tokens }) => `${turns.get(call.call_id) ?? "?"}${tokens === 0 ? "" : ` (${number(tokens)})`}`);
    const words = `${named.length === 1 ? "turn" : "turns"} ${named.slice(0, mostNamed).join(", ")}`;
    const more = named.length > mostNamed ? ` and ${number(named.length - mostNamed)} more` : "";
    const count = all.reduce((sum, { tokens }) => sum + tokens, 0);
    return outsideLine(count, reason, `no token ids of ${words}${more}; the engine's count stands in brackets`);
  });
  return markup`${byReason}${lost === 0 ? nothing : outsideLine(lost, "damaged", "of lines that cannot be read")}`;
}

const mostNamed = 20;

function outsideLine(count: number, reason: UntrainedReason, words: string): Markup {
  return markup`<p class="untrained-words outside">not trained: ${number(count)} ${spaced(reason)}, ${words} <span class="quiet">${meaning(untrainedReasons, reason)}</span></p>`;
}
