/** The routes of the view. All only read. Each request makes its page from the rows in memory. */
import { type Context, Hono } from "hono";
import { AlidadeError, asAlidadeError } from "../../base/errors.ts";
import { imagesIn, isStored } from "../../base/media/stored-picture.ts";
import type { ControlEnv } from "../../proxy/control/index.ts";
import { callerLeft } from "../../proxy/control/index.ts";
import { contentPolicy } from "../page/layout.ts";
import { markup } from "../page/markup.ts";
import { type Picture, pictureIn, pictureOf } from "../page/pictures.ts";
import { hashOfPicture } from "../page/turn-detail.ts";
import { workPage } from "../page/work-page.ts";
import type { ShownWork } from "../render-html.ts";
import { filterNames } from "../run/filters.ts";
import type { LiveScreens } from "../run/live-screens.ts";
import { readListQuery } from "../run/query.ts";
import type { ViewedRun } from "../run/viewed-run.ts";
import { readAsset } from "./assets.ts";
import type { OtherRun, PageMaker } from "./make-pages.ts";
import type { RunEvents } from "./run-events.ts";

export type ViewParts = {
  pages: PageMaker;
  /** Reads what a rollout changed; a sentence if no sandbox can be made here. */
  workOf: (id: string, signal: AbortSignal) => Promise<ShownWork>;
  events: RunEvents;
  /** Absent: the pages show no screens of running rollouts. */
  screens?: LiveScreens;
  /** Finds the run that `set` names; null: there is none to compare with. */
  otherRun: ((name: string | null) => Promise<OtherRun>) | null;
};

export function viewApp({ pages, workOf, events, screens, otherRun }: ViewParts): Hono<ControlEnv> {
  const app = new Hono<ControlEnv>();
  app.use(async (context, next) => {
    if (!context.req.path.includes("/assets/")) await pages.reader.refresh();
    await next();
    for (const [name, value] of Object.entries(fixedHeaders)) context.res.headers.set(name, value);
  });
  const query = (context: Context) => new URL(context.req.url).searchParams;
  const list = (context: Context) => readListQuery(query(context));
  const id = (context: Context) => query(context).get("id") ?? "";
  app.get("/", async (context) => page(await pages.run(list(context))));
  app.get("/tasks", (context) => page(pages.tasks(list(context).page)));
  if (otherRun !== null)
    app.get("/compare", async (context) => {
      const other = await otherRun(query(context).get("set"));
      await other.run.refresh();
      return page(pages.compare(other, list(context)));
    });
  app.get("/group", async (context) => {
    const params = query(context);
    const [task, group] = [params.get("task"), params.get("group")];
    const compareWith = (reference: string) => {
      const address = new URLSearchParams(params);
      address.set("with", reference);
      return `group?${address}`;
    };
    return page(await pages.group(task, group, params.get("with"), compareWith));
  });
  app.get("/rollout", async (context) => page(await pages.rollout(id(context), list(context), natural(query(context).get("turn")))));
  app.get("/tokens", async (context) => {
    const params = query(context);
    const place = { trace: params.get("trace"), turn: natural(params.get("turn")), from: natural(params.get("from")) };
    return page(await pages.tokens(id(context), place, params.get("colour")));
  });
  app.get("/events", (context) => events.open(natural(context.req.header("last-event-id") ?? null), callerLeft(context)));
  app.get("/picture", async (context) => {
    const found = await pictureNamed(pages.reader, id(context), query(context).get("hash") ?? "");
    if (found === null) throw new AlidadeError("not_found", "this session holds no such picture");
    return new Response(new Uint8Array(found.bytes), { headers: { "content-type": found.type } });
  });
  if (screens !== undefined)
    app.get("/screen", async (context) => {
      const png = await screens.frame(id(context), callerLeft(context));
      return new Response(new Uint8Array(png), { headers: { "content-type": "image/png" } });
    });
  app.get("/work", async (context) => {
    // It makes a sandbox: a link of another site must not.
    if (context.req.header("sec-fetch-site") === "cross-site")
      throw new AlidadeError("request_invalid", "open this page from the rollout's own");
    const rollout = pages.reader.find(id(context));
    return page(pages.page("changes", workPage(rollout, await workOf(rollout.id, callerLeft(context)), pages.links)));
  });
  app.get("/assets/:name", (context) => assetAnswer(context.req.param("name")));
  app.notFound(() => failure(new AlidadeError("not_found", "there is no such page")));
  app.onError((thrown, context) => {
    const error = asAlidadeError(thrown, "internal");
    const isFilter = error.code === "request_invalid" && filterNames.some((name) => name === error.param);
    return isFilter ? pageAnswer(pages.wrongFilter(query(context), error), error.status) : failure(error);
  });
  return app;
}

/** Has the app of other pages answer, as if `path` were all of the address's path. */
export function answerBelow(
  app: Hono<ControlEnv>,
  path: string,
  { req, env }: { req: Request; env: ControlEnv["Bindings"] },
): Response | Promise<Response> {
  const address = new URL(req.url);
  address.pathname = path;
  return app.fetch(new Request(address, { headers: req.headers }), env);
}

const fixedHeaders = {
  "content-security-policy": contentPolicy,
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cache-control": "no-store",
  "cross-origin-resource-policy": "same-origin",
  "cross-origin-opener-policy": "same-origin",
};

export async function assetAnswer(name: string): Promise<Response> {
  const asset = await readAsset(name);
  if (asset === null) return failure(new AlidadeError("not_found", "there is no such file"));
  return new Response(new Uint8Array(asset.bytes), { headers: { ...fixedHeaders, "content-type": asset.type } });
}

/** A page that no run's routes make. */
export function pageAnswer(text: string, status: number): Response {
  return new Response(text, { status, headers: { ...fixedHeaders, "content-type": htmlType } });
}

const htmlType = "text/html; charset=utf-8";

function page(text: string): Response {
  return new Response(text, { headers: { "content-type": htmlType } });
}

/** Shows an error as one sentence. Works also if the run cannot be read. */
export function failure(error: AlidadeError): Response {
  const text = markup`<!doctype html><meta charset="utf-8"><title>Alidade</title><link rel="stylesheet" href="assets/page.css"><main><h1>${error.code.replaceAll("_", " ")}</h1><p>${error.message}</p><p><a href="./">the run</a></p></main>`;
  return new Response(text.toString(), { status: error.status, headers: { ...fixedHeaders, "content-type": htmlType } });
}

/** null: not a whole number of 0 or more. */
function natural(text: string | null): number | null {
  return text !== null && /^\d{1,12}$/.test(text) ? Number(text) : null;
}

/** Only one that the session shows: a hash alone opens no other picture of the run. */
async function pictureNamed(run: ViewedRun, session: string, hash: string): Promise<Picture | null> {
  const { messages } = await run.trajectory(session);
  for (const image of imagesIn(Object.values(messages))) {
    if (isStored(image) && image.sha256 === hash) return pictureIn(await run.picture(session, hash));
    if (!isStored(image) && hashOfPicture(image.url) === hash) return pictureOf(image.url);
  }
  return null;
}
