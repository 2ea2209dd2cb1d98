/** The pages of a service's sets, below `/view`: a list, and for each set the routes of `alidade view`. */
import type { Hono } from "hono";
import { AlidadeError, asAlidadeError } from "../../base/errors.ts";
import { isSetId } from "../../base/schema/ids.ts";
import type { ControlEnv } from "../../proxy/control/index.ts";
import type { Caller, ServicePages } from "../../service/index.ts";
import { comparedSets } from "../page/compare-page.ts";
import { setLinks } from "../page/links.ts";
import { setsPage, signInPage } from "../page/sets-page.ts";
import { answerBelow, assetAnswer, failure, PageMaker, pageAnswer, RunEvents, viewApp } from "../server/index.ts";
import { Vocabulary } from "../tokens/vocabulary.ts";
import { type SetPlace, SetReader } from "./set-reader.ts";

/** Sets whose rows are in memory. Others are read again when a page asks. */
const mostOpen = 4;
const mostListed = 200;

/** `vocabulary`: folder with texts of tokens that the service's own engines told. */
type OpenedSet = { pages: PageMaker; app: Hono<ControlEnv> };

export class SetPages implements ServicePages, Disposable {
  readonly #place: SetPlace;
  readonly #vocabulary: string;
  readonly #open = new Map<string, Promise<OpenedSet>>();
  readonly #stopped = new AbortController();

  constructor(place: SetPlace, vocabulary: string) {
    this.#place = place;
    this.#vocabulary = vocabulary;
  }

  [Symbol.dispose](): void {
    this.#stopped.abort(new AlidadeError("cancelled", "the service is stopped"));
  }

  signIn(error: AlidadeError | null): Response {
    return pageAnswer(signInPage(error?.message ?? null), error?.status ?? 200);
  }

  asset(name: string): Promise<Response> {
    return assetAnswer(name);
  }

  answer: ServicePages["answer"] = async ({ path, request, env }, { ledger }) => {
    try {
      if (path === "") return pageAnswer(setsPage(await ledger.latestSets(mostListed)), 200);
      const [, set = "", rest] = /^([^/]*)(\/.*)?$/s.exec(path) ?? [];
      if (!isSetId(set)) throw new AlidadeError("not_found", "there is no such page");
      await ledger.assertSees(set);
      const address = new URL(request.url);
      const other = address.searchParams.get("set");
      // Asked of every path, because an address can be written in several ways.
      if (other !== null) await ledger.assertSees(other);
      else if (rest === "/compare") return await this.#choice(set, address, await ledger.latestSets(mostListed));
      if (rest === undefined) return new Response(null, { status: 308, headers: { location: `${address.pathname}/${address.search}` } });
      const { app } = await this.#openedOf(set);
      return await answerBelow(app, rest, { req: request, env });
    } catch (error) {
      return failure(asAlidadeError(error, "internal"));
    }
  };

  async #choice(set: string, { searchParams }: URL, { sets }: Awaited<ReturnType<Caller["ledger"]["latestSets"]>>): Promise<Response> {
    const { pages } = await this.#openedOf(set);
    return pageAnswer(pages.page("Compare", comparedSets(sets, set, searchParams.toString())), 200);
  }

  /** The set that was asked for last stays longest. */
  async #openedOf(set: string): Promise<OpenedSet> {
    const known = this.#open.get(set) ?? this.#opened(set);
    this.#open.delete(set);
    this.#open.set(set, known);
    if (this.#open.size > mostOpen) this.#open.delete(this.#open.keys().next().value ?? "");
    try {
      return await known;
    } catch (error) {
      this.#open.delete(set);
      throw error;
    }
  }

  async #opened(set: string): Promise<OpenedSet> {
    const reader = await SetReader.open(this.#place, set);
    const pages = new PageMaker(reader, setLinks, await Vocabulary.of(this.#vocabulary));
    const events = new RunEvents(reader, setLinks, this.#stopped.signal);
    const workOf = async () => "What it changed lies at its node: open the node's folder with `alidade show`.";
    // The caller was found to see the other set, too.
    const otherRun = async (other: string | null) => ({
      run: (await this.#openedOf(other ?? "")).pages.reader,
      below: `../${other}/`,
      set: other,
    });
    return { pages, app: viewApp({ pages, events, workOf, otherRun }) };
  }
}
