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
  /** The list of the sets of a service; null: there is one run alone. */
  sets: () => string | null;
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
  sets: () => null,
  isLive: true,
};

/** What a rollout of a service changed lies at its node. */
export const setLinks: PageLinks = { ...servedLinks, work: () => null, sets: () => "../" };

function params(fields: Record<string, string | number | null | undefined>): string {
  const all = new URLSearchParams();
  for (const [name, value] of Object.entries(fields)) if (value !== null && value !== undefined) all.set(name, String(value));
  return all.toString();
}

/** Makes a link; without `href`, only its content. */
export function link(href: string | null, content: Markup | string, kind = ""): Markup {
  return href === null ? markup`<span class="${kind}">${content}</span>` : markup`<a class="${kind}" href="${href}">${content}</a>`;
}
