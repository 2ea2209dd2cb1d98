/** The routes as an OpenAPI document, made of the very schemas that check the requests. */
import { z } from "zod";
import type { ListenerRoute } from "./route.ts";

/** `roles`: a token with one of them may call it, where a listener has several. */
type ListedRoute = Omit<ListenerRoute, "handle"> & { roles?: readonly string[] };

export function openApi(title: string, routes: readonly ListedRoute[], version: string): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const route of routes) {
    const path = route.path.replaceAll(/:(\w+)/g, "{$1}");
    paths[path] = { ...paths[path], [route.method]: operationOf(route) };
  }
  return {
    openapi: "3.1.0",
    info: { title, version },
    components: { securitySchemes: { token: { type: "http", scheme: "bearer" } } },
    security: [{ token: [] }],
    paths,
  };
}

function operationOf(route: ListedRoute): object {
  const { title, roles, path, body, lines, query, headers = {}, answers = ["application/json"], status = 200 as number } = route;
  const inPath = [...path.matchAll(/:(\w+)/g)].map(([, name]) => ({ name, in: "path", required: true, schema: { type: "string" } }));
  const content = body
    ? { "application/json": { schema: schemaOf(body) } }
    : lines && { "application/x-ndjson": { schema: schemaOf(lines) } };
  return {
    summary: title,
    ...(roles && { description: `Role: ${roles.join(" or ")}.` }),
    parameters: [...inPath, ...(query ? inQuery(query) : []), ...inHeaders(headers)],
    ...(content && { requestBody: { content } }),
    responses: {
      [status]: { description: "done", content: Object.fromEntries(answers.map((type) => [type, {}])) },
      "4XX": { description: '{"error": {"code", "message", "param"}}' },
    },
  };
}

function inQuery(query: z.ZodType): object[] {
  const { properties = {} } = schemaOf(query) as { properties?: Record<string, { description?: string }> };
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    in: "query",
    required: false,
    schema,
    description: schema.description,
  }));
}

function inHeaders(headers: Record<string, string>): object[] {
  return Object.entries(headers).map(([name, description]) => ({
    name,
    in: "header",
    required: false,
    schema: { type: "string" },
    description,
  }));
}

/** What a request may send. */
export function schemaOf(schema: z.ZodType): object {
  const { $schema: _dialect, ...plain } = z.toJSONSchema(schema, { io: "input", unrepresentable: "any" });
  return plain;
}
