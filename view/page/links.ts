/** The addresses of pages. A static folder has files instead, and lacks some pages. null: there is no such page. */
import { type Markup, markup } from "./markup.ts";

export type PageLinks = {
  run: (query: string) => string | null;
  tasks: () => string | null;
  group: (taskId: string | null, groupId: string | null) => string | null;
  /** `query`: the list from which the reader came. */
  rollout: (id: string, place?: { query?: string; turn?: number }) => string | null;
  tokens: (id: string, place?: { trace?: string; from?: number; turn?: number; colour?: string }) => string | null;
  picture: (id: string, hash: string) => string | null;
  work: (id: string) => string | null;
  /** Address of a running rollout's screen, by its session; null if this page cannot show it. */
  screen: (sessionId: string) => string | null;
  /** What stands above these pages: the sets of a service, or the run that this one is compared with. null: nothing. */
  above: { name: string; href: string } | null;
  /** This run beside another one; null: there is no other one. */
  compare: (query: string) => string | null;
  /** Tells whether the page receives changes. */
  isLive: boolean;
};

/** Addresses are relative, so that the pages may lie below any path. */
export const servedLinks: PageLinks = {
  run: (query) => (query === "" ? "./" : `./?${query}`),
  tasks: () => "tasks",
  group: (taskId, groupId) => `group?${params({ task: taskId, group: groupId })}`,
  rollout: (id, { query = "", turn } = {}) => `rollout?${[params({ id, turn }), query].filter((part) => part !== "").join("&")}`,
  tokens: (id, { trace, from, turn, colour } = {}) => `tokens?${params({ id, trace, from, turn, colour })}`,
  picture: (id, hash) => `picture?${params({ id, hash })}`,
  work: (id) => `work?${params({ id })}`,
  screen: (id) => `screen?${params({ id })}`,
  above: null,
  compare: () => null,
  isLive: true,
};

/** What a rollout of a service changed lies at its node. */
export const setLinks: PageLinks = { ...servedLinks, work: () => null, screen: () => null, above: { name: "Sets", href: "../" }, compare };

/** Links of a run that is served with another one below it. */
export const comparedLinks: PageLinks = { ...servedLinks, compare };

export function otherLinks(name: string): PageLinks {
  return { ...servedLinks, above: { name, href: "../" } };
}

function compare(query: string): string {
  return query === "" ? "compare" : `compare?${query}`;
}

function params(fields: Record<string, string | number | null | undefined>): string {
  const all = new URLSearchParams();
  for (const [name, value] of Object.entries(fields)) if (value !== null && value !== undefined) all.set(name, String(value));
  return all.toString();
}

/** Makes a link; without `href`, only its content. */
export function link(href: string | null, content: Markup | string, kind = ""): Markup {
  return href === null ? markup`<span class="${kind}">${content}</span>` : markup`<a class="${kind}" href="${href}">${content}</a>`;
}
