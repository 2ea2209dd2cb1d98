/** A body of the control listener, checked: the field at fault is named. */
import type { HttpBindings } from "@hono/node-server";
import type { Context } from "hono";
import { z } from "zod";
import { AlidadeError } from "../../base/errors.ts";
import { complaintOf } from "../../base/schema/complaints/complaint.ts";
import { withJoined } from "../../base/wire/joined.ts";
import { parseJson } from "../../base/wire/json.ts";
import { RequestBytes } from "../http/request-bytes.ts";

export type ControlEnv = { Bindings: HttpBindings };

/** A trainer's own requests are a few kilobytes; its data set it sends in several. */
export const mostBodyBytes = 64 * 1024 * 1024;
/** The largest one at 250 kB/s. A slower sender would keep room that other requests wait for. */
export const bodyMs = 300_000;

/** No body is an empty object. Throws `request_invalid` with `param`. */
export async function body<T extends z.ZodType>(context: Context<ControlEnv>, schema: T): Promise<z.infer<T>> {
  const value = withJoined(
    await new RequestBytes((context.env as HttpBindings).incoming).read({ limit: mostBodyBytes, withinMs: bodyMs }),
    (bytes) => (bytes.length === 0 ? {} : parseJson(bytes)),
  );
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const { path, given, message, unknownKey } = complaintOf(result.error, value);
  const param = path.join(".");
  // Where a password can stand the text is not repeated.
  const isValue = /[@?#]/.test(given) ? "" : ` is ${given}`;
  const text =
    unknownKey === null ? `${param || "body"}${isValue}: ${message}` : `"${param}" is no field of this request${fieldsOf(schema, path)}`;
  throw new AlidadeError("request_invalid", text, { param: param || null });
}

/** Those that there are, where the unknown one stands at the top. */
function fieldsOf(schema: z.ZodType, path: string[]): string {
  return path.length === 1 && schema instanceof z.ZodObject ? `; there are: ${Object.keys(schema.shape).join(", ")}` : "";
}
