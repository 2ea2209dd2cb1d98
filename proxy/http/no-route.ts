/** Requests without a route: answered with an error in the caller's own dialect, and never recorded as a call. */

import { AlidadeError } from "../../base/errors.ts";
import type { Dialect, Headers, HttpAnswer } from "../dialects/index.ts";
import { dialects } from "../dialects/index.ts";

/** Embeddings, files, batches, tokenizers …: none of these is passed on, because a session has no place for them. */
export function noRoute(method: string, path: string, headers: Headers): HttpAnswer {
  const shown = path.replace(/^\/s\/[^/]+/, "");
  const error = new AlidadeError(
    "not_found",
    `${method} ${shown} is no route of this proxy. The request was not passed on and not recorded.${aboutBase(method, shown)}`,
  );
  return errorAt(path, headers, error);
}

/** What is wrong with the base URL, where that alone makes it no route; with a space in front. */
function aboutBase(method: string, path: string): string {
  if (hasRoute(method, `/v1${path}`)) return ` The base URL lacks /v1: give the client one that ends with /v1, as OPENAI_BASE_URL does.`;
  if (path.startsWith("/v1/") && hasRoute(method, path.slice(3))) return " The base URL has a /v1 too many: this client adds its own.";
  return "";
}

function hasRoute(method: string, path: string): boolean {
  return dialects.some(({ routes }) => routes.some((route) => route.method === method && route.path === path));
}

/** An error in the shape that a caller of this path understands. */
export function errorAt(path: string, headers: Headers, error: AlidadeError): HttpAnswer {
  return callerOf(path.replace(/^\/s\/[^/]+/, ""), headers).error(error);
}

/** Codex falls back to server-sent events at 426. A client that only reads the page gets a 404. */
export function noWebSocket(headers: Headers): AlidadeError {
  if (headers.upgrade?.toLowerCase() !== "websocket")
    return new AlidadeError("not_found", "Answers are not listed here: ask for one by its id, or POST a request.");
  return new AlidadeError("request_invalid", "WebSockets are not spoken here: POST the request and read server-sent events.", {
    status: 426,
  });
}

/** The methods of every path that some dialect has, as an `Allow` header. */
export function methodsByPath(): Map<string, string> {
  const methods = new Map<string, Set<string>>();
  for (const { method, path } of dialects.flatMap((dialect) => dialect.routes)) {
    const known = methods.get(path) ?? new Set(["OPTIONS"]);
    methods.set(path, known.add(method));
    if (method === "GET") known.add("HEAD");
  }
  return new Map([...methods].map(([path, known]) => [path, [...known].sort().join(", ")]));
}

/** The dialect for an error: the owner of the longest route that this path begins with, otherwise the dialect of the key's header. */
function callerOf(path: string, headers: Headers): Dialect {
  const owners = dialects.flatMap((dialect) => dialect.routes.map((route) => ({ dialect, path: route.path.replace(/[:{].*$/, "") })));
  const owner = owners.filter((one) => path.startsWith(one.path)).sort((a, b) => b.path.length - a.path.length)[0];
  return owner?.dialect ?? dialectByKey(headers) ?? dialects[0];
}

/** The dialect whose header carries the key. Every vendor's SDK sends `GET /v1/models`, and only this header differs. */
export function dialectByKey(headers: Headers): Dialect | undefined {
  return dialects.find((dialect) => dialect.credential.some((one) => "header" in one && !one.scheme && headers[one.header] !== undefined));
}
