/** Makes each page of a run, for the server and for a static folder. */
import { type AlidadeError, messageOf } from "../../base/errors.ts";
import { compareSessions, type SessionDiff } from "../diff/compare-sessions.ts";
import { comparePage } from "../page/compare-page.ts";
import { type GroupSample, groupPage } from "../page/group-page.ts";
import { toPage } from "../page/layout.ts";
import type { PageLinks } from "../page/links.ts";
import type { Markup } from "../page/markup.ts";
import { rolloutPage, whyOf } from "../page/rollout-page.ts";
import { runPage, wrongFilterPage } from "../page/run-page.ts";
import { tasksPage } from "../page/tasks-page.ts";
import { type Colour, colours, tokensPage, trainerColour } from "../page/tokens-page.ts";
import { whatItDid } from "../page/what-it-did.ts";
import { compareRuns } from "../run/compare-runs.ts";
import { type Entry, isOpen } from "../run/entries.ts";
import { inGroups, taskRows } from "../run/group-table.ts";
import type { LiveScreens } from "../run/live-screens.ts";
import { type ListQuery, writeListQuery, writtenFilters } from "../run/query.ts";
import { runOverview } from "../run/run-figures-of.ts";
import type { RunFidelity, ViewedRollout, ViewedRun } from "../run/viewed-run.ts";
import { type TokenWindow, type TrainerCalls, tokenWindow, type WindowPlace } from "../tokens/token-window.ts";
import type { Vocabulary } from "../tokens/vocabulary.ts";

type PageTexts = Pick<Vocabulary, "read" | "textOf" | "learn" | "whyUnknown">;

type PageParts = { policy?: string; trainer?: TrainerCalls | undefined; screens?: LiveScreens };

/** How many samples of a group are compared. Each comparison reads a trajectory. */
const mostCompared = 16;

/** A run to compare with. `below`: where its pages stand. `set`: its id in a service; null: it is a folder. */
export type OtherRun = { run: ViewedRun; below: string; set: string | null };

export class PageMaker {
  readonly reader: ViewedRun;
  readonly links: PageLinks;
  readonly #policy: string | undefined;
  /** The last one: pages of a list, and a look back at it, ask for it again. */
  #summed: { key: string; summary: RunFidelity } | null = null;
  readonly #vocabulary: PageTexts;
  readonly #trainer: TrainerCalls | null;
  readonly #screens: LiveScreens | null;

  /** `policy`: content security policy of static pages, which have no headers. `trainer`: logprobs that a trainer recomputed. */
  constructor(reader: ViewedRun, links: PageLinks, vocabulary: PageTexts, { policy, trainer, screens }: PageParts = {}) {
    this.reader = reader;
    this.links = links;
    this.#vocabulary = vocabulary;
    this.#policy = policy;
    this.#trainer = trainer ?? null;
    this.#screens = screens ?? null;
  }

  async run(query: ListQuery, hasFilters = true): Promise<string> {
    const rollouts = this.meant(query);
    const fidelity = await this.fidelity(query);
    const { unread, note } = this.reader;
    const overview = runOverview(rollouts.map(({ entry }) => entry));
    const body = runPage({ query, rollouts, overview, fidelity, unread, note, links: this.links, hasFilters });
    return this.page("Run", body, overview.steps.length > 1);
  }

  wrongFilter(params: URLSearchParams, error: AlidadeError): string {
    return this.page("Run", wrongFilterPage(writtenFilters(params), error, this.links));
  }

  meant({ filters, isMeant }: ListQuery): readonly ViewedRollout[] {
    if (filters.size === 0) return this.reader.rollouts;
    const meant = this.reader.rollouts.filter(({ entry }) => isMeant(entry));
    // Who reads a group goes from sample to sample.
    return filters.has("group") ? inGroups(meant) : meant;
  }

  async fidelity({ filters, isMeant }: ListQuery): Promise<RunFidelity> {
    const key = `${this.reader.version} ${writeListQuery(filters)}`;
    if (this.#summed?.key === key) return this.#summed.summary;
    const summary = await this.reader.fidelity(filters.size === 0 ? null : isMeant);
    this.#summed = { key, summary };
    return summary;
  }

  compare({ run, below, set }: OtherRun, query: ListQuery): string {
    const { filters, isMeant, page } = query;
    const entriesOf = (rollouts: readonly ViewedRollout[]) => rollouts.map(({ entry }) => entry).filter(isMeant);
    const narrowed = (task: string) => writeListQuery(new Map(filters).set("task", task));
    const one = { name: this.reader.name, linkTo: (task: string) => this.links.run(narrowed(task)) };
    const other = { name: run.name, linkTo: (task: string) => `${below}?${narrowed(task)}` };
    const comparison = compareRuns(entriesOf(this.reader.rollouts), entriesOf(run.rollouts));
    return this.page("Compare", comparePage({ comparison, one, other, filters: writeListQuery(filters), page, set }));
  }

  tasks(page: number, perPage?: number): string {
    return this.page("Tasks and groups", tasksPage({ tasks: taskRows(this.reader.rollouts), page, links: this.links, perPage }));
  }

  async rollout(id: string, query: ListQuery, turn: number | null): Promise<string> {
    const rollout = this.reader.find(id);
    const session = rollout.members.some(({ session_id }) => session_id === id) ? id : rollout.entry.session_id;
    const trajectory = session === null ? null : await this.reader.trajectory(session);
    const record = await this.reader.record(rollout.entry);
    const group = this.reader.group(rollout);
    const place = this.#placeIn(rollout, query);
    const mayShow = session !== null && isOpen(rollout.entry) && (await this.#screens?.has(session)) === true;
    const screen = mayShow ? session : null;
    const body = rolloutPage({ rollout, group, trajectory, record, screen, place, turn, links: this.links });
    return this.page(nameOf(rollout.entry), body);
  }

  /** null: no token ids are on record. */
  async window(sessionId: string, place: WindowPlace): Promise<TokenWindow | null> {
    await this.#vocabulary.read();
    const trajectory = await this.reader.trajectory(sessionId);
    const read = () => tokenWindow(trajectory, place, this.#vocabulary.textOf, this.#trainer);
    const window = read();
    return window !== null && (await this.#vocabulary.learn(window)) ? read() : window;
  }

  async tokens(sessionId: string, place: WindowPlace, colour: string | null): Promise<string> {
    const trajectory = await this.reader.trajectory(sessionId);
    const window = await this.window(sessionId, place);
    const offered: readonly Colour[] = this.#trainer === null ? colours : [...colours, trainerColour];
    const chosen = offered.find((name) => name === colour) ?? "logprob";
    const whyUnknown = window && this.#vocabulary.whyUnknown(window);
    const body = tokensPage({ trajectory, window, whyUnknown, colour: chosen, colours: offered, links: this.links });
    return this.page(`tokens of ${trajectory.task.id ?? sessionId}`, body);
  }

  /** `reference`: the sample with which the others are compared. Default: a sample with the highest reward. */
  async group(
    taskId: string | null,
    groupId: string | null,
    reference: string | null,
    compareWith: ((id: string) => string) | null,
  ): Promise<string> {
    const samples = this.reader.rollouts
      .filter(({ entry }) => entry.task_id === taskId && entry.group_id === groupId)
      .toSorted((a, b) => (a.entry.sample_index ?? 0) - (b.entry.sample_index ?? 0));
    const best = samples.reduce<ViewedRollout | null>(
      (most, one) => (most === null || (one.entry.reward ?? -1) > (most.entry.reward ?? -1) ? one : most),
      null,
    );
    const chosen = samples.find(({ id }) => id === reference) ?? best;
    const found: GroupSample[] = [];
    for (const [at, rollout] of samples.entries()) {
      const diff = at < mostCompared && chosen !== null && rollout !== chosen ? await this.#compare(chosen, rollout) : null;
      const record = at < mostCompared ? await this.reader.record(rollout.entry) : null;
      const did = at < mostCompared ? await this.#deeds(rollout, diff) : null;
      found.push({ rollout, why: whyOf(rollout.entry, record), diff, did });
    }
    const left = Math.max(0, samples.length - mostCompared);
    const body = groupPage({ task_id: taskId, group_id: groupId, samples: found, reference: chosen, left, links: this.links, compareWith });
    return this.page(`group ${groupId ?? ""}`, body);
  }

  async #compare(one: ViewedRollout, other: ViewedRollout): Promise<SessionDiff | string> {
    const [a, b] = [one.entry.session_id, other.entry.session_id];
    if (a === null || b === null) return "nothing was recorded of its session";
    try {
      return compareSessions(await this.reader.trajectory(a), await this.reader.trajectory(b), { aligns: false });
    } catch (error) {
      return `it cannot be compared: ${messageOf(error)}`;
    }
  }

  /** Tells what follows the parting; of a sample that parts nowhere, all. */
  async #deeds({ entry }: ViewedRollout, diff: SessionDiff | string | null): Promise<string | null> {
    if (entry.session_id === null) return null;
    const parting = diff === null || typeof diff === "string" ? null : diff.parting;
    if (parting !== null && parting.pair.turn_b === null) return null;
    const trajectory = await this.reader.trajectory(entry.session_id).catch(() => null);
    return trajectory && whatItDid(trajectory, (parting?.pair.turn_b ?? 0) + 1);
  }

  #placeIn(rollout: ViewedRollout, query: ListQuery) {
    const list = this.meant(query);
    const at = list.indexOf(rollout);
    if (at < 0) return null;
    const [previous, next] = [list[at - 1]?.id ?? null, list[at + 1]?.id ?? null];
    return { query: writeListQuery(query.filters), previous, next, at: at + 1, of: list.length };
  }

  page(title: string, body: Markup, hasChart = false): string {
    return toPage({
      title,
      run: this.reader.name,
      links: this.links,
      body,
      hasChart,
      ...(this.#policy !== undefined && { policy: this.#policy }),
    });
  }
}

function nameOf({ task_id, sample_index, session_id }: Entry): string {
  return task_id === null ? (session_id ?? "") : `${task_id}/${sample_index ?? "?"}`;
}
