/** Screen 1: shows why a rollout got its reward. It opens on the turn that failed. */
import { untrainedReasons } from "../../base/schema/reasons/untrained.ts";
import type { RolloutRecord, Verdict } from "../../base/schema/rollout.ts";
import type { Trajectory } from "../../base/schema/trajectory.ts";
import { CoveredTime } from "../../base/statistics/covered-time.ts";
import { phaseNames } from "../../rollouts/records/index.ts";
import { describeRecord, whyVerdict } from "../describe-verdict.ts";
import { type Entry, isOpen } from "../run/entries.ts";
import type { ViewedRollout } from "../run/viewed-run.ts";
import { type SessionView, type TurnView, toSessionView } from "../session-view.ts";
import { stackedBar } from "./bars.ts";
import { factRows, meaning } from "./facts.ts";
import { link, type PageLinks } from "./links.ts";
import { cutText, type Markup, markup, nothing } from "./markup.ts";
import { samplePill } from "./sample-pill.ts";
import { type ToolAnswers, type TurnError, toolAnswers } from "./tool-answers.ts";
import { turnDetail } from "./turn-detail.ts";
import { type ListedTurns, turnList } from "./turn-list.ts";
import { number, percent, rewardPill, seconds, sorted, spaced } from "./words.ts";

export type RolloutPage = {
  rollout: ViewedRollout;
  group: readonly ViewedRollout[];
  /** null: nothing is recorded yet. */
  trajectory: Trajectory | null;
  record: RolloutRecord | null;
  /** Id of its session, if its screen can be seen now; otherwise null. */
  screen: string | null;
  /** Its place in the list from which the reader came; null: it is not in that list. */
  place: { query: string; previous: string | null; next: string | null; at: number; of: number } | null;
  /** The turn to show; null: chosen by `turnToLookAt`. */
  turn: number | null;
  links: PageLinks;
};

export function rolloutPage(page: RolloutPage): Markup {
  const { rollout, trajectory, record, links, place } = page;
  const { entry } = rollout;
  const view = trajectory && toSessionView(trajectory);
  const answers = toolAnswers(view?.turns ?? []);
  const named = view?.turns.find(({ number: at }) => at === page.turn);
  const chosen = view && (named === undefined ? turnToLookAt(view, answers) : { turn: named, why: null });
  const query = place?.query ?? "";
  return markup`
<div class="head">
<h1>${entry.task_id ?? entry.session_id ?? ""}${entry.sample_index === null ? "" : `/${entry.sample_index}`} ${rewardPill(entry.reward)}
<small>${gradedBy(entry, record)}</small></h1>
${steps(page)}
</div>
${groupStrip(page)}
<p class="why"><b>why</b> ${whyOf(entry, record)}</p>
${evidence(page)}
${times(entry, trajectory)}
${tokenLine(entry, view)}
${sessionsOf(page)}
${liveScreen(page)}
${
  view === null || chosen === null
    ? markup`<p class="quiet">Nothing of its session was recorded.</p>`
    : sessionView({ view, answers, shown: chosen.turn, id: rollout.id, query, links }, chosen.why)
}`;
}

/** `why`: why the page chose this turn; null: the reader did. */
function sessionView(turns: ListedTurns, why: string | null): Markup {
  return markup`<div class="session">${turnList(turns)}
<div class="detail">${why === null ? nothing : markup`<p class="quiet small">opened at turn ${turns.shown.number}: ${why}</p>`}${turnDetail(turns)}</div></div>`;
}

/** Shows the screen. The page's script fetches the picture again each second. */
function liveScreen({ screen, links }: RolloutPage): Markup {
  const href = screen === null ? null : links.screen(screen);
  if (href === null) return nothing;
  return markup`<figure class="screen"><figcaption class="quiet">the screen as it is: you can only look</figcaption><img class="live-screen" src="${href}" alt="the screen of the running rollout"></figure>`;
}

const tierMeanings: Record<Verdict["tier"], string> = {
  T0: "T0: the agent shared the place with its grader",
  T1: "T1: the work is run in a fresh place, and could still write its own report",
  T2: "T2: the report cannot be written by the work",
  T3: "T3: nothing of the work is run beside what grades it",
};

function gradedBy(entry: Entry, record: RolloutRecord | null): Markup {
  const verdict = record?.verdict;
  const end = entry.end === null || entry.end === "exited" ? "" : `ended: ${spaced(entry.end)}`;
  const attempt = entry.attempt > 1 ? `attempt ${entry.attempt}` : "";
  const mask = entry.mask_reason === null ? "" : `not in the loss: ${spaced(entry.mask_reason)}`;
  const grader =
    verdict == null
      ? spaced(entry.state)
      : markup`${spaced(verdict.status)} by ${verdict.grader} at <abbr title="${tierMeanings[verdict.tier]}">${verdict.tier}</abbr>`;
  const rest = [end, mask, attempt].filter((word) => word !== "");
  return markup`${grader}${rest.map((word) => ` · ${word}`)}`;
}

/** Links to the previous and next rollout of the list, with keys `k` and `j`. */
function steps({ place, links }: RolloutPage): Markup {
  if (place === null) return nothing;
  const { query, previous, next, at, of } = place;
  const to = (id: string | null) => (id === null ? null : links.rollout(id, { query }));
  return markup`<p class="steps">${link(to(previous), "← k", "key-k")} ${link(links.run(query), `${number(at)} of ${number(of)}`)} ${link(to(next), "j →", "key-j")}</p>`;
}

/** Shows the rewards of its group as links, and marks its own. */
function groupStrip({ rollout, group, links, place }: RolloutPage): Markup {
  const { entry } = rollout;
  if (entry.group_id === null || group.length < 2) return nothing;
  const query = place?.query ?? "";
  const samples = group.slice(0, mostSiblings).map((one) => {
    const kind = one.id === rollout.id ? "this" : "";
    return markup`${link(links.rollout(one.id, { query }), samplePill(one.entry), `sample ${kind}`)} `;
  });
  const more = group.length > mostSiblings ? `and ${number(group.length - mostSiblings)} more` : "";
  return markup`<p class="group">${link(links.group(entry.task_id, entry.group_id), "group, where samples part", "key-d")} ${samples}${more}</p>`;
}

const mostSiblings = 64;

export function whyOf(entry: Entry, record: RolloutRecord | null): string {
  const words = [
    record?.error == null ? null : `${spaced(record.error.code)}: ${record.error.message}`,
    record?.verdict == null ? null : whyVerdict(record.verdict),
    entry.reward === null && record === null ? "no verdict is on record" : null,
    isOpen(entry) ? `it is not over: ${entry.state}` : null,
  ];
  const said = words.filter((one) => one !== null);
  return cutText([...new Set(said)].join(" · ") || "the verdict gives no reason beside its reward", 2_000);
}

function evidence({ record, rollout, links }: RolloutPage): Markup {
  if (record === null) return nothing;
  const rows = describeRecord(record, true);
  const of = (...names: string[]) => rows.filter(([name]) => names.includes(name));
  const rest = rows.filter(([name]) => !["output ends", "harness's last words"].includes(name));
  const fold = (name: string, shown: [string, string][]) =>
    shown.length === 0 ? nothing : markup`<details><summary>${name}</summary>${factRows(shown)}</details>`;
  const work = record.work === null ? null : links.work(rollout.id);
  return markup`<div class="evidence">${fold("verdict", rest)}${fold("output of the grading", of("output ends"))}${fold(
    "harness's last words",
    of("harness's last words"),
  )}${work === null ? nothing : markup`<a href="${work}">what it changed (diff)</a>`}</div>`;
}

/** Shows waiting, making, running and grading as one bar, and how much of the run the engine took. */
function times(entry: Entry, trajectory: Trajectory | null): Markup {
  const { phases } = entry;
  if (phases === null)
    return entry.seconds === null ? nothing : markup`<p class="quiet">${seconds(entry.seconds)} from first call to last answer</p>`;
  const names = phaseNames.filter((name) => name !== "teach" || phases.teach !== null);
  const parts = names.map((name) => ({ kind: `phase-${name}`, size: phases[name] ?? 0, title: `${name} ${seconds(phases[name])}` }));
  const whole = parts.reduce((sum, { size }) => sum + size, 0);
  const engine = trajectory === null || phases.run === null ? "" : ` · engine ${percent(engineSeconds(trajectory), phases.run)} of run`;
  const time = entry.seconds === null ? "" : ` · ${seconds(entry.seconds)} run and grade, which lists call time`;
  const legend = parts.map(
    ({ kind, title }) =>
      markup`<span><svg width="10" height="10" aria-hidden="true"><rect class="${kind}" width="10" height="10"/></svg> ${title}</span> `,
  );
  return markup`<div class="times">${stackedBar(parts)}<p class="quiet legend">${legend}· ${seconds(whole)} in all${time}${engine}</p></div>`;
}

/** Returns the time in which an engine had at least one of its calls. Parallel calls count once. */
function engineSeconds({ calls }: Trajectory): number {
  const covered = new CoveredTime();
  for (const { times } of calls) if (times.finished !== null) covered.add(times.begun, times.finished);
  return covered.spans.reduce((sum, { from, to }) => sum + to - from, 0) / 1000;
}

function tokenLine(entry: Entry, view: SessionView | null): Markup {
  const sampled = view?.trajectory.fidelity.sampled_tokens ?? entry.sampled_tokens;
  if (sampled === null) return nothing;
  const {
    trainable_tokens: trained = entry.trainable_tokens,
    excluded = entry.excluded,
    replayed_tokens = 0,
  } = view?.trajectory.fidelity ?? {};
  const reasons = sorted(excluded).map(
    ([reason, tokens]) => markup`<abbr title="${meaning(untrainedReasons, reason)}">${spaced(reason)} ${number(tokens)}</abbr> `,
  );
  const left = sampled - (trained ?? 0);
  return markup`<p class="tokens-line"><b>tokens</b> ${number(sampled)} sampled · ${number(trained)} trained${left === 0 ? nothing : markup` · ${number(left)} not: ${reasons}`}${replayed_tokens === 0 ? nothing : markup` · ${number(replayed_tokens)} more replayed`}</p>`;
}

/** Lists the sessions of a team. */
function sessionsOf({ rollout, links, place }: RolloutPage): Markup {
  if (rollout.members.length < 2) return nothing;
  const all = rollout.members.flatMap(({ member, session_id }) =>
    session_id === null ? [] : [markup`${link(links.rollout(session_id, { query: place?.query ?? "" }), member ?? session_id)} `],
  );
  return markup`<p>team: ${all}</p>`;
}

/** Picks the turn to show first: the last failed call, else the last turn whose tool failed, else the lead agent's last turn. */
function turnToLookAt({ turns, trajectory }: SessionView, { errorOf }: ToolAnswers): { turn: TurnView; why: string } | null {
  const lead = turns.filter(({ call }) => trajectory.lead_agents.includes(call.agent) && call.request_class === "main");
  const last = (kind: TurnError) => lead.findLast((turn) => errorOf(turn) === kind);
  const choices: [TurnView | undefined, string][] = [
    [last("call"), "the last call that failed"],
    [last("tool"), "the last one whose tool answered with an error"],
    [lead.at(-1), "the last one of the main agent; none has an error"],
    [turns.at(-1), "the last one; none is the main agent's"],
  ];
  for (const [turn, why] of choices) if (turn !== undefined) return { turn, why };
  return null;
}
