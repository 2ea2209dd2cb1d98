/** Reads the filters and page number of a list from an address. The address alone decides what a page shows. */
import type { Entry } from "./entries.ts";
import { type EntryTest, type FilterName, filterNames, filters } from "./filters.ts";

export type ListQuery = {
  /** The filters as written, without empty ones. */
  filters: ReadonlyMap<FilterName, string>;
  isMeant: EntryTest;
  /** Counted from 1. */
  page: number;
};

/** Bounds the characters of one filter. Task ids are shorter. */
const longestFilter = 500;

/** Throws `request_invalid` that names the field. */
export function readListQuery(params: URLSearchParams): ListQuery {
  const given = writtenFilters(params);
  const tests = [...given].map(([name, text]) => filters[name](text));
  const page = Number(params.get("page") ?? "1");
  return {
    filters: given,
    isMeant: (entry: Entry) => tests.every((test) => test(entry)),
    page: Number.isSafeInteger(page) && page > 0 ? page : 1,
  };
}

/** Returns the filters as written, also if they are not valid. */
export function writtenFilters(params: URLSearchParams): Map<FilterName, string> {
  const given = new Map<FilterName, string>();
  for (const name of filterNames) {
    const text = params.get(name)?.trim().slice(0, longestFilter) ?? "";
    if (text !== "") given.set(name, text);
  }
  return given;
}

/** Returns `task=a&reward=0`, or an empty text. `more`: sets further fields; null removes a field. */
export function writeListQuery(given: ReadonlyMap<string, string>, more: Record<string, string | number | null> = {}): string {
  const params = new URLSearchParams();
  for (const [name, text] of given) params.set(name, text);
  for (const [name, value] of Object.entries(more)) {
    if (value === null) params.delete(name);
    else params.set(name, String(value));
  }
  return params.toString();
}
