/** Where pages lie. A static folder has files in the place of addresses, and not all of them: null is a page that is not there. */
import { type Markup, markup } from "./markup.ts";

export type PageLinks = {
  run: (query: string) => string | null;
  tasks: () => string | null;
  group: (taskId: string | null, groupId: string | null) => string | null;
  /** `query`: the list that one came from. */
  rollout: (id: string, place?: { query?: string; turn?: number }) => string | null;
  tokens: (id: string, place?: { trace?: string; from?: number; turn?: number; colour?: string }) => string | null;
  picture: (id: string, hash: string) => string | null;
  work: (id: string) => string | null;
  compare: (() => string) | null;
  /** Whether the page is told of changes. */
  isLive: boolean;
};

/** Relative, so that the pages may lie below any path. */
export const servedLinks: PageLinks = {
  run: (query) => (query === "" ? "./" : `./?${query}`),
  tasks: () => "tasks",
  group: (taskId, groupId) => `group?${params({ task: taskId, group: groupId })}`,
  rollout: (id, { query = "", turn } = {}) => `rollout?${[params({ id, turn }), query].filter((part) => part !== "").join("&")}`,
  tokens: (id, { trace, from, turn, colour } = {}) => `tokens?${params({ id, trace, from, turn, colour })}`,
  picture: (id, hash) => `picture?${params({ id, hash })}`,
  work: (id) => `work?${params({ id })}`,
  compare: null,
  isLive: true,
};

function params(fields: Record<string, string | number | null | undefined>): string {
  const all = new URLSearchParams();
  for (const [name, value] of Object.entries(fields)) if (value !== null && value !== undefined) all.set(name, String(value));
  return all.toString();
}

/** The content alone where there is no such page. */
export function link(href: string | null, content: Markup | string, kind = ""): Markup {
  return href === null ? markup`<span class="${kind}">${content}</span>` : markup`<a class="${kind}" href="${href}">${content}</a>`;
}
