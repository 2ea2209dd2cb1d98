/** `alidade view --static`: the pages as files, for sharing. They need no server; filters and live rows do. */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { AlidadeError } from "../../base/errors.ts";
import { makePrivateFolder, privateFileMode } from "../../proxy/store/index.ts";
import { staticPolicy } from "../page/layout.ts";
import type { PageLinks } from "../page/links.ts";
import { filterNames } from "../run/filters.ts";
import { taskRows } from "../run/group-table.ts";
import { readListQuery } from "../run/query.ts";
import { RunReader } from "../run/run-reader.ts";
import type { ViewedRollout } from "../run/viewed-run.ts";
import { type TrainerCalls, windowTokens } from "../tokens/token-window.ts";
import { type TextSources, Vocabulary } from "../tokens/vocabulary.ts";
import { assetNames, readAsset } from "./assets.ts";
import { PageMaker } from "./make-pages.ts";

/** Turns of a rollout that get pages of their own: a session may have a million. */
const mostTurns = 1_000;

export type StaticOrder = {
  folder: string;
  into: string;
  /** Filters as in an address (`reward=0&task=slug*`): the rollouts that get pages of their own. */
  only: string;
  texts?: TextSources | undefined;
  /** A trainer's logprobs, which colour tokens. */
  trainer?: TrainerCalls | undefined;
  /** Told how much will be written, before it is. */
  announce: (rollouts: number, pages: number) => void;
};

/** Returns how many pages and bytes were written. Throws `request_invalid` with the filter that is none. */
export async function writeStatic({
  folder,
  into,
  only,
  texts,
  trainer,
  announce,
}: StaticOrder): Promise<{ pages: number; bytes: number }> {
  const reader = await RunReader.open(folder);
  const asked = new URLSearchParams(only);
  const wrong = [...asked.keys()].find((name) => !filterNames.some((known) => known === name));
  if (wrong !== undefined)
    throw new AlidadeError("request_invalid", `--only is ${wrong}=…: name one of ${filterNames.join(", ")}`, { param: "only" });
  const { isMeant } = readListQuery(asked);
  const chosen = reader.rollouts.filter(({ entry }) => isMeant(entry));
  if (chosen.length === 0) throw new AlidadeError("not_found", `no rollout of ${folder} is as --only asks: ${only}`, { param: "only" });
  const names = new StaticNames(chosen);
  const pages = new PageMaker(reader, names.links, await Vocabulary.of(folder, texts), { policy: staticPolicy, trainer });
  const groups = groupsOf(chosen);
  const turns = chosen.reduce((sum, { entry }) => sum + Math.min(entry.turns ?? 0, mostTurns), 0);
  announce(chosen.length, 2 + groups.length + chosen.length + 2 * turns);
  await makePrivateFolder(into);
  await mkdir(join(into, "assets"), { recursive: true, mode: 0o700 });
  const written = { pages: 0, bytes: 0 };
  const write = async (name: string | null, text: string): Promise<void> => {
    if (name === null) return;
    await writeFile(join(into, name), text, { mode: privateFileMode });
    written.pages++;
    written.bytes += Buffer.byteLength(text);
  };
  for (const name of assetNames) await writeFile(join(into, "assets", name), (await readAsset(name))?.bytes ?? "");
  const all = readListQuery(new URLSearchParams());
  await write("index.html", await pages.run(all, false));
  await write("tasks.html", pages.tasks(1, Number.MAX_SAFE_INTEGER));
  for (const { task_id, group_id } of groups)
    await write(names.links.group(task_id, group_id), await pages.group(task_id, group_id, null, null));
  for (const { id, entry } of chosen) {
    await write(names.links.rollout(id), await pages.rollout(id, all, null));
    if (entry.session_id !== null) await writeTurnsAndTokens(entry.session_id, pages, names.links, write);
  }
  return written;
}

/** A page for each turn and for each window of each trace. */
async function writeTurnsAndTokens(
  id: string,
  pages: PageMaker,
  links: PageLinks,
  write: (name: string | null, text: string) => Promise<void>,
): Promise<void> {
  const all = readListQuery(new URLSearchParams());
  const { calls, traces } = await pages.reader.trajectory(id);
  for (let turn = 1; turn <= Math.min(calls.length, mostTurns); turn++) {
    await write(links.rollout(id, { turn }), await pages.rollout(id, all, turn));
    await write(links.tokens(id, { turn }), await pages.tokens(id, { trace: null, turn, from: null }, null));
  }
  for (const { trace_id: trace } of traces) {
    const { length } = (await pages.window(id, { trace, turn: null, from: 0 })) ?? { length: 0 };
    for (let from = 0; from < length; from += windowTokens)
      await write(links.tokens(id, { trace, from }), await pages.tokens(id, { trace, turn: null, from }, null));
  }
}

function groupsOf(rollouts: readonly ViewedRollout[]): { task_id: string | null; group_id: string | null }[] {
  return taskRows(rollouts).flatMap(({ task_id, groups }) => groups.map(({ group_id }) => ({ task_id, group_id })));
}

/** Files by numbers of ours: ids of tasks and groups are words of strangers. */
class StaticNames {
  readonly #rollouts: Map<string, number>;
  readonly #groups: Map<string, number>;
  readonly links: PageLinks;

  constructor(chosen: readonly ViewedRollout[]) {
    this.#rollouts = new Map(
      chosen.flatMap(({ id, members }, at) =>
        [id, ...members.flatMap(({ session_id }) => session_id ?? [])].map((name) => [name, at] as const),
      ),
    );
    this.#groups = new Map(groupsOf(chosen).map(({ task_id, group_id }, at) => [JSON.stringify([task_id, group_id]), at]));
    this.links = {
      run: (query) => (query === "" ? "index.html" : null),
      tasks: () => "tasks.html",
      group: (task, group) => named("group", this.#groups.get(JSON.stringify([task, group]))),
      rollout: (id, { turn } = {}) =>
        (turn ?? 0) > mostTurns ? null : named(turn === undefined ? "rollout" : `turn-${turn}`, this.#rollouts.get(id)),
      tokens: (id, place = {}) => ((place.turn ?? 0) > mostTurns ? null : named(tokensName(place), this.#rollouts.get(id))),
      picture: () => null,
      work: () => null,
      screen: () => null,
      above: null,
      compare: () => null,
      isLive: false,
    };
  }
}

/** Only what begins a window has a file: others are reached through their turn. */
function tokensName({ trace, from, turn }: { trace?: string; from?: number; turn?: number }): string {
  if (turn !== undefined) return `tokens-turn-${turn}`;
  const window = Math.floor((from ?? 0) / windowTokens) * windowTokens;
  return `tokens-${/^\w{1,40}$/.test(trace ?? "") ? trace : "t0"}-${window}`;
}

function named(kind: string, at: number | undefined): string | null {
  return at === undefined ? null : `${kind}-${at}.html`;
}
