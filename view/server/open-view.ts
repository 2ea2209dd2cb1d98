/** Serves a run's pages on their own listener. */
import { servedLinks } from "../page/links.ts";
import type { ShownWork } from "../render-html.ts";
import { RunReader } from "../run/run-reader.ts";
import { Vocabulary } from "../tokens/vocabulary.ts";
import { PageMaker } from "./make-pages.ts";
import { RunEvents } from "./run-events.ts";
import { viewApp } from "./view-app.ts";
import { ViewListener } from "./view-listener.ts";

export type ViewOrder = {
  folder: string;
  /** 0: any free port. */
  port: number;
  key: string;
  /** Path to a `tokenizer.json`. */
  tokenizer?: string | undefined;
  workOf: (reader: RunReader, id: string, signal: AbortSignal) => Promise<ShownWork>;
};

/** `url`: without the key. Throws `config_invalid` if the port is not free, or the tokenizer's file is not valid. */
export type OpenView = AsyncDisposable & { url: string; reader: RunReader };

export async function openView({ folder, port, key, tokenizer, workOf }: ViewOrder): Promise<OpenView> {
  const stopped = new AbortController();
  const reader = await RunReader.open(folder);
  const pages = new PageMaker(reader, servedLinks, await Vocabulary.of(folder, tokenizer));
  const events = new RunEvents(reader, servedLinks, stopped.signal);
  const shown = (id: string, signal: AbortSignal) => workOf(reader, id, AbortSignal.any([signal, stopped.signal]));
  const listener = new ViewListener(viewApp({ pages, events, workOf: shown }), key);
  return {
    url: await listener.listen(port),
    reader,
    async [Symbol.asyncDispose]() {
      stopped.abort();
      await listener[Symbol.asyncDispose]();
      await reader.close();
    },
  };
}
