/** Serves a run's pages on their own listener. */
import { Hono } from "hono";
import type { ControlEnv } from "../../proxy/control/index.ts";
import { comparedLinks, otherLinks, type PageLinks, servedLinks } from "../page/links.ts";
import type { ShownWork } from "../render-html.ts";
import { LiveScreens } from "../run/live-screens.ts";
import type { OpenIndexOptions } from "../run/open-index-apart.ts";
import { RunReader } from "../run/run-reader.ts";
import type { TrainerCalls } from "../tokens/token-window.ts";
import { type TextSources, Vocabulary } from "../tokens/vocabulary.ts";
import { PageMaker } from "./make-pages.ts";
import { RunEvents } from "./run-events.ts";
import { answerBelow, viewApp } from "./view-app.ts";
import { ViewListener } from "./view-listener.ts";

export type ViewOrder = OpenIndexOptions & {
  folder: string;
  /** 0: any free port. */
  port: number;
  key: string;
  texts?: TextSources | undefined;
  /** A trainer's logprobs, which colour tokens. */
  trainer?: TrainerCalls | undefined;
  /** Folder of a run to compare with. */
  other?: string | undefined;
  workOf: (reader: RunReader, id: string, signal: AbortSignal) => Promise<ShownWork>;
};

/** `url`: without the key. Throws `config_invalid` if the port is not free, or the tokenizer's file is not valid. */
export type OpenView = AsyncDisposable & { url: string; reader: RunReader };

export async function openView(order: ViewOrder): Promise<OpenView> {
  const stopped = new AbortController();
  const reader = await RunReader.open(order.folder, order);
  const other = order.other === undefined ? null : await RunReader.open(order.other, order);
  const app = await appOf(reader, other === null ? servedLinks : comparedLinks, order, stopped.signal, other);
  // It stands in front of the run's own routes, which would answer that there is no such page.
  const all = new Hono<ControlEnv>();
  if (other !== null) {
    const there = await appOf(other, otherLinks(reader.name), order, stopped.signal, null);
    const at = `/${otherPath}`;
    all.get(`${at}/*`, ({ req, env }) => answerBelow(there, req.path.slice(at.length), { req: req.raw, env }));
  }
  all.route("/", app);
  const listener = new ViewListener(all, order.key);
  return {
    url: await listener.listen(order.port),
    reader,
    async [Symbol.asyncDispose]() {
      stopped.abort();
      await listener[Symbol.asyncDispose]();
      for (const one of [reader, other]) await one?.close();
    },
  };
}

const otherPath = "other";

async function appOf(
  reader: RunReader,
  links: PageLinks,
  { texts, trainer, workOf }: ViewOrder,
  stopped: AbortSignal,
  other: RunReader | null,
): Promise<Hono<ControlEnv>> {
  const screens = new LiveScreens(reader.folder);
  const pages = new PageMaker(reader, links, await Vocabulary.of(reader.folder, texts), { trainer, screens });
  const events = new RunEvents(reader, links, stopped);
  const shown = (id: string, signal: AbortSignal) => workOf(reader, id, AbortSignal.any([signal, stopped]));
  const otherRun = other && (async () => ({ run: other, below: `${otherPath}/`, set: null }));
  return viewApp({ pages, events, workOf: shown, screens, otherRun });
}
