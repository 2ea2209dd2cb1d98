/** The pages of a service's sets, below `/view`: a list, and for each set the routes of `alidade view`. */
import type { Hono } from "hono";
import { AlidadeError, asAlidadeError } from "../../base/errors.ts";
import { isSetId } from "../../base/schema/ids.ts";
import type { ControlEnv } from "../../proxy/control/index.ts";
import type { ServicePages } from "../../service/index.ts";
import { setLinks } from "../page/links.ts";
import { setsPage, signInPage } from "../page/sets-page.ts";
import { assetAnswer, failure, PageMaker, pageAnswer, RunEvents, viewApp } from "../server/index.ts";
import { Vocabulary } from "../tokens/vocabulary.ts";
import { type SetPlace, SetReader } from "./set-reader.ts";

/** Sets whose rows are in memory. Others are read again when a page asks. */
const mostOpen = 4;
const mostListed = 200;

/** `vocabulary`: folder with texts of tokens that the service's own engines told. */
export class SetPages implements ServicePages, Disposable {
  readonly #place: SetPlace;
  readonly #vocabulary: string;
  readonly #open = new Map<string, Promise<Hono<ControlEnv>>>();
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
      if (rest === undefined) return new Response(null, { status: 308, headers: { location: `${address.pathname}/${address.search}` } });
      const app = await this.#appOf(set);
      address.pathname = rest;
      return await app.fetch(new Request(address, { headers: request.headers }), env);
    } catch (error) {
      return failure(asAlidadeError(error, "internal"));
    }
  };

  /** The set that was asked for last stays longest. */
  async #appOf(set: string): Promise<Hono<ControlEnv>> {
    const known = this.#open.get(set) ?? this.#appFor(set);
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

  async #appFor(set: string): Promise<Hono<ControlEnv>> {
    const reader = await SetReader.open(this.#place, set);
    const pages = new PageMaker(reader, setLinks, await Vocabulary.of(this.#vocabulary));
    const events = new RunEvents(reader, setLinks, this.#stopped.signal);
    const workOf = async () => "What it changed lies at its node: open the node's folder with `alidade show`.";
    return viewApp({ pages, events, workOf });
  }
}
