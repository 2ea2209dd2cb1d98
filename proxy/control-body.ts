/** A body of the control listener, checked: the field at fault is named. */
import type { HttpBindings } from "@hono/node-server";
import type { Context } from "hono";
import type { z } from "zod";
import { AlidadeError } from "../errors.ts";
import { withJoined } from "../wire/joined.ts";
import { parseJson } from "../wire/json.ts";
import { RequestBytes } from "./request-bytes.ts";

export type Env = { Bindings: HttpBindings };

/** A trainer's own requests are a few kilobytes. */
const maxBytes = 64 * 1024 * 1024;

/** No body is an empty object. Throws `request_invalid` with `param`. */
export async function body<T extends z.ZodType>(context: Context<Env>, schema: T): Promise<z.infer<T>> {
  const value = withJoined(await new RequestBytes((context.env as HttpBindings).incoming).read({ limit: maxBytes }), (bytes) =>
    bytes.length === 0 ? {} : parseJson(bytes),
  );
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  const path = issue?.code === "unrecognized_keys" ? [...issue.path, issue.keys[0]] : (issue?.path ?? []);
  const param = path.map(String).join(".");
  throw new AlidadeError("request_invalid", `${param || "body"}: ${issue?.message ?? "invalid"}`, { param: param || null });
}
