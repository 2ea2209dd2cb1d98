/** Shows one whole turn: how it continues, what it says and calls, and the results. */
import { createHash } from "node:crypto";
import { blockLabels, describeDifference, describeEdge, describeRepeated, describeTokens } from "../describe.ts";
import type { BlockView } from "../session-view.ts";
import { edgeMeanings } from "./edge-meanings.ts";
import { link, type PageLinks } from "./links.ts";
import { cutText, type Markup, markup, nothing } from "./markup.ts";
import { pictureOf } from "./pictures.ts";
import type { ListedTurns } from "./turn-list.ts";
import { number, spaced } from "./words.ts";

export function turnDetail(turns: ListedTurns): Markup {
  const { view, answers, shown: turn, id, query, links } = turns;
  const { call, number: at } = turn;
  const session = view.trajectory.session_id;
  const step = call.policy.start?.step ?? null;
  const pills = [call.agent, spaced(call.request_class), spaced(call.outcome), spaced(call.finish_reason ?? "")].filter(
    (word) => word !== "" && word !== "main",
  );
  const difference = describeDifference(turn);
  const parts =
    difference &&
    markup`<div class="difference"><del>${cutText(difference.before, 400)}</del><ins>${cutText(difference.now, 400)}</ins></div>`;
  const block = (one: BlockView) => blockView(one, session, links);
  const answer = answers.answersOf(turn);
  const isAbove = view.turns.some((one) => one.number === turn.parent && answers.answersOf(one) === turn);
  const again = describeRepeated(turn);
  return markup`<h2>turn ${at} ${pills.slice(0, 6).map((word) => markup`<span class="pill none">${word.slice(0, 60)}</span> `)}
<small>${link(links.tokens(session, { turn: at }), "tokens", "key-t")}${step === null ? "" : ` · step ${number(step)}`}</small></h2>
<p class="${call.match === "exact" || call.match === "root" ? "quiet" : "alert"}"><abbr title="${edgeMeanings[call.match]}">${describeEdge(turn)}</abbr> · ${describeTokens(turn.tokens)}</p>${parts}
${call.error === null ? nothing : markup`<p class="bad">${call.error.code}: ${cutText(call.error.message, 2_000)}</p>`}
${again === "" ? nothing : markup`<p class="quiet">${again}${whereBefore(turns)}</p>`}
${turn.added.map((one) => (one.kind === "tool_result" && isAbove ? nothing : block(one)))}
${turn.output.length === 0 ? markup`<p class="quiet">It said nothing.</p>` : turn.output.map(block)}
${answer === null ? nothing : markup`<h3>came back, before ${link(links.rollout(id, { query, turn: answer.number }), `turn ${answer.number}`)}</h3>${answer.added.map(block)}`}`;
}

/** Links to the first turn of the conversation, which shows the task's prompt. */
function whereBefore({ view: { turns }, shown, id, query, links }: ListedTurns): Markup {
  let first = shown.same_request ?? shown.number;
  for (let parent = turns[first - 1]?.parent ?? null; parent !== null && parent < first; parent = turns[first - 1]?.parent ?? null)
    first = parent;
  if (first === shown.number) return nothing;
  return markup`: the conversation begins at ${link(links.rollout(id, { query, turn: first }), `turn ${first}`)}`;
}

/** A text longer than `open` characters or `lines` lines is folded. A block shows at most `most` characters and `pictures` pictures. */
const bounds = { open: 1_500, lines: 24, most: 50_000, pictures: 20 };

function blockView({ kind, detail, text, error, images }: BlockView, session: string, links: PageLinks): Markup {
  const label = `${blockLabels[kind]}${detail === "" ? "" : ` ${detail.slice(0, 100)}`}`;
  const isLong = text.length > bounds.open || text.split("\n", bounds.lines + 1).length > bounds.lines;
  const whole = markup`<pre>${cutText(text, bounds.most)}</pre>`;
  const body =
    isLong && kind !== "assistant"
      ? markup`<details><summary>${text.slice(0, 160)} … <em>${number(text.length)} characters</em></summary>${whole}</details>`
      : whole;
  const pictures = images.slice(0, bounds.pictures).map((url) => picture(url, session, links));
  return markup`<div class="block ${kind}${error ? " error" : ""}"><span class="label">${label}</span><div>${body}${pictures}</div></div>`;
}

/** Loads the picture by its hash from our own route. An address that the agent wrote is never fetched. */
function picture(url: string, session: string, links: PageLinks): Markup {
  const stored = storedName.exec(url)?.[1];
  const href = stored ? links.picture(session, stored) : pictureOf(url) === null ? null : links.picture(session, hashOfPicture(url));
  return href === null ? nothing : markup`<img src="${href}" alt="picture" loading="lazy">`;
}

const storedName = /^media\/([0-9a-f]{64})$/;

export function hashOfPicture(url: string): string {
  return createHash("sha256").update(url).digest("hex");
}
