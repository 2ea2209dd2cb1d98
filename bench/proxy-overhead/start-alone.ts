/** Alidade alone, between the load generator and the mock upstream, each a process of its own. */
import { join } from "node:path";
import { Child } from "../child.ts";
import type { Play, Played } from "./load.ts";

export type Alone = AsyncDisposable & {
  /** Answers what `alidade.ts` lists: `open` gives the keys of new sessions, `close` seals them and tells where their logs are. */
  alidade: Child;
  /** One growing session a key, from its first turn to its last. */
  play(sessions: Pick<Play, "payload" | "concurrency" | "wire"> & { keys: string[] }): Promise<Played>;
};

export async function startAlone(): Promise<Alone> {
  await using scope = new AsyncDisposableStack();
  const start = (file: string): Child => scope.use(new Child(join(import.meta.dirname, file)));
  const upstream = start("mock-upstream.ts");
  const load = start("load.ts");
  const alidade = start("alidade.ts");
  await upstream.ask("prepare");
  const url = await alidade.ask<string>("start", await upstream.ask<string>("url"));
  const release = scope.move();
  return {
    alidade,
    play: (sessions) => load.ask<Played>("play", { url, shape: "growing", sessions: sessions.keys.length, ...sessions } satisfies Play),
    [Symbol.asyncDispose]: () => release.disposeAsync(),
  };
}
