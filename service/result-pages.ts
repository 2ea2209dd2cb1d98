import type { Ledger } from "./ledger/index.ts";

type ResultPage = Awaited<ReturnType<Ledger["results"]>>;

/** A page is parsed at one go. The listener answers others between two pages. */
const rowsAtOnce = 500;

/** Yields the results behind a cursor in pages, until there are no more. Skips expired ones. Throws `not_found`, and the signal's reason. */
export async function* resultPages(ledger: Ledger, set: string, after: string | null, signal: AbortSignal): AsyncGenerator<ResultPage> {
  for (let cursor = after; ; ) {
    signal.throwIfAborted();
    const page = await ledger.results(set, cursor, rowsAtOnce, "skip");
    if (page.length > 0) yield page;
    if (page.length < rowsAtOnce) return;
    cursor = page.at(-1)?.cursor ?? cursor;
  }
}
